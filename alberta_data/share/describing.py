"""What a dataset says of itself in words: title, licence, who made it. Outside the id, under the seal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from alberta_data import store
from alberta_data.errors import ArgumentError
from alberta_data.share.opening import opened
from alberta_data.store.metadata import Root

FIELDS = ("title", "description", "licence", "creators", "citation", "links")
_MOST = {"title": 200, "licence": 100, "description": 20_000, "citation": 20_000}
_LINK = re.compile(r"https?://[^\s<>\"'`\\{}|^]{1,2000}")


def annotate(
    dataset: Path | str,
    *,
    title: str | None = None,
    description: str | None = None,
    licence: str | None = None,
    creators: Iterable[str] | None = None,
    citation: str | None = None,
    links: Iterable[str] | None = None,
) -> Root:
    """Change what a dataset says of itself, in one step; the id stays. Return its new root.

    What is not given stays; an empty text or list takes an entry away.

    Args:
        dataset: path of its folder.
        title: at most 200 characters.
        description: a few sentences.
        licence: an SPDX name, such as CC0-1.0 or CC-BY-4.0.
        creators: names of people or groups.
        citation: how to cite it, as text or BibTeX.
        links: http or https addresses.

    Raises:
        ArgumentError: a field of another form, or nothing given.
        DestinationError: a packed dataset, or one in use.
        StorageError: the disk failed; the old description stands.
    """
    given = {
        "title": title, "description": description, "licence": licence,
        "creators": creators, "citation": citation, "links": links,
    }  # fmt: skip
    changes = {name: _checked(name, value) for name, value in given.items() if value is not None}
    if not changes:
        raise ArgumentError(f"annotate must be given one of {', '.join(FIELDS)}, got none")
    with opened(dataset) as found:
        about = {**found.root.about, **changes}
        place = found.name if isinstance(dataset, store.Store) else getattr(dataset, "path", dataset)
    return store.annotate(Path(place), {name: value for name, value in about.items() if value})


def _checked(name: str, value: Any) -> Any:
    if name in ("creators", "links"):
        entries = [value] if isinstance(value, str) else list(value)
        if not all(isinstance(entry, str) and entry.strip() and len(entry) <= 2000 for entry in entries):
            raise ArgumentError(f"{name} must be texts that are not empty, got {entries!r:.200}")
        if name == "links" and not all(_LINK.fullmatch(entry) for entry in entries):
            raise ArgumentError(f"links must begin with http:// or https:// and hold no spaces, got {entries!r:.200}")
        return entries
    if not isinstance(value, str) or len(value) > _MOST[name]:
        raise ArgumentError(f"{name} must be a text of at most {_MOST[name]} characters, got {value!r:.80}")
    if name in ("title", "licence") and ("\n" in value or "\r" in value):
        raise ArgumentError(f"{name} must be one line, got {value!r:.80}")
    return value.strip()


def said(root: Root) -> Mapping[str, Any]:
    """Return what a dataset says of itself; a stranger may have written it: what is of another form is left out."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        value = root.about.get(name)
        if name in ("creators", "links"):
            entries = [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
            entries = [value] if isinstance(value, str) and name == "creators" else entries
            entries = [entry for entry in entries if entry.strip() and (name != "links" or _LINK.fullmatch(entry))]
            if entries:
                found[name] = entries
        elif isinstance(value, str) and value.strip():
            found[name] = value.strip()
    return found


def title_of(root: Root) -> str:
    """Return a dataset's title, or one made of its spec."""
    title = said(root).get("title")
    if title:
        return str(title)
    seed = root.spec["seed"]
    return f"{root.spec['stream']}, {root.steps:,} steps{'' if seed is None else f', seed {seed}'}"


def description_of(root: Root) -> str:
    """Return a dataset's description, or one made of its spec."""
    description = said(root).get("description")
    if description:
        return str(description)
    kinds = {
        "stream": "A synthetic non-stationary stream for continual learning",
        "environment": "Transitions of a Gymnasium environment for continual learning",
        "frozen": "A recorded stream for continual learning",
        "external": "A stream for continual learning",
    }
    return (
        f"{kinds[root.spec['kind']]}: {root.spec['stream']}, {root.steps:,} steps in order of time, frozen and "
        f"verifiable under the id {root.id}."
    )
