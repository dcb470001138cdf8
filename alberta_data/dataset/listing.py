"""The datasets of a folder, finished and unfinished."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from alberta_data.dataset.naming import PACKED_SUFFIX, SUFFIX, data_folder
from alberta_data.errors import AlbertaDataError, ArgumentError
from alberta_data.store.addresses import AddressSource, local_path, retrying, shown, transport
from alberta_data.store.buckets import Bucket
from alberta_data.store.metadata import Root
from alberta_data.store.reader import open_store
from alberta_data.store.sources import is_address
from alberta_data.streams.registry import STREAMS

PARTIAL = ".partial"
_AT_ONCE = 8


@dataclass(frozen=True)
class Entry:
    """A dataset of a folder.

    Attributes:
        path: where it lies; of one elsewhere, its address.
        name: its file name.
        spec: all that determines its numbers; empty where it cannot be read.
        id: of a finished dataset, else None.
        features: of a step, or None.
        size: bytes of a finished dataset's files, or None.
        done: share of the steps that are on disk for sure, 0 … 1; 1 for a finished one.
        resume: the command that goes on with an unfinished one, or None.
        error: what is wrong with it, or None.
    """

    path: Path | str
    name: str
    spec: Mapping[str, Any]
    id: str | None = None
    features: int | None = None
    size: int | None = None
    done: float = 1.0
    resume: str | None = None
    error: str | None = None

    @property
    def streams(self) -> list[str]:
        """The name of its stream, and of the one in it where that is wrapped."""
        found, spec = [], self.spec
        while isinstance(spec, Mapping) and "stream" in spec:
            found.append(str(spec["stream"]))
            parameters = spec.get("parameters")
            spec = parameters.get("inner") if isinstance(parameters, Mapping) else None  # type: ignore[assignment]
        return found


def list_datasets(
    folder: Path | str | None = None,
    *,
    stream: str | None = None,
    seed: int | None = None,
    min_steps: int | None = None,
    max_steps: int | None = None,
) -> list[Entry]:
    """Return the datasets of a folder, in the order of their names.

    Args:
        folder: by default the data folder; also an address of an object store (s3, gs, az, hf).
        stream: only those of this stream, wrapped ones too.
        seed: only those of this seed.
        min_steps: only those of at least so many steps.
        max_steps: only those of at most so many.

    Raises:
        ArgumentError: an address of a web server, which has no listing.
        StorageError: the object store did not answer.
    """

    def wanted(entry: Entry) -> bool:
        steps = entry.spec.get("steps")
        return (
            (stream is None or stream in entry.streams)
            and (seed is None or entry.spec.get("seed") == seed)
            and (min_steps is None or (steps is not None and steps >= min_steps))
            and (max_steps is None or (steps is not None and steps <= max_steps))
        )

    return [entry for entry in _all(folder) if wanted(entry)]


def _all(folder: Path | str | None) -> list[Entry]:
    if is_address(folder):
        place = local_path(str(folder))
        if place is None:
            return _elsewhere(str(folder).rstrip("/"))
        folder = place
    base = data_folder(folder)
    found = [*base.glob(f"*{SUFFIX}"), *base.glob(f"*{PACKED_SUFFIX}"), *base.glob(f"*{SUFFIX}{PARTIAL}")]
    return [_unfinished(path) if path.name.endswith(PARTIAL) else _finished(path) for path in sorted(found)]


def _finished(path: Path) -> Entry:
    try:
        with open_store(path) as store:
            return _described(path, path.name, store.root, store.root_bytes)
    except (AlbertaDataError, OSError) as err:
        return Entry(path, path.name, {}, error=str(err))


def _described(path: Path | str, name: str, root: Root, root_bytes: bytes) -> Entry:
    # Of an environment, as the name counts them: with the action where it is a feature by default.
    with_action = bool(root.spec["parameters"].get("include_action_in_features"))
    counted = ("observations", "actions") if with_action else ("observations",)
    features = sum(math.prod(root.layouts[array].shape[1:]) for array in counted if array in root.layouts)
    return Entry(path, name, root.spec, root.id, features, root.size + len(root_bytes))


def _elsewhere(url: str) -> list[Entry]:
    """Return the datasets below an address; a packed one is named alone, for it is read only once it is here."""
    remote = transport(url)
    with closing(remote):
        if not isinstance(remote, Bucket):
            raise ArgumentError(
                f"a web server has no listing, got {shown(url)}: name one dataset below it, or an object store"
            )
        found = retrying(remote.names)

    def entry(name: str) -> Entry:
        place, size = f"{url}/{quote(name)}", found[name]
        if size is not None:
            return Entry(place, name, {}, size=size, error="packed: fetch brings it here, and says what is in it")
        try:
            with closing(AddressSource(place)) as source:
                return _described(place, name, source.root, source.root_bytes)
        except (AlbertaDataError, OSError) as err:
            return Entry(place, name, {}, error=str(err))

    names = [name for name, size in found.items() if name.endswith(SUFFIX if size is None else PACKED_SUFFIX)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(entry, sorted(names)))


def _unfinished(partial: Path) -> Entry:
    from alberta_data.store.resuming import Progress

    path = partial.with_name(partial.name.removesuffix(PARTIAL))
    try:
        progress = Progress.read(partial)
        if progress is None:
            return Entry(path, path.name, {}, done=0.0, error="begun, with nothing in it yet")
        spec = progress.header["spec"]
        return Entry(path, path.name, spec, done=progress.end / spec["steps"], resume=command(spec, path))
    except (AlbertaDataError, OSError, KeyError, ValueError) as err:
        return Entry(path, path.name, {}, done=0.0, error=str(err))


def command(spec: Mapping[str, Any], path: Path) -> str | None:
    """Return the command line that makes a spec at `path`, or None where no command does."""
    words = ["alberta-data", "generate"]
    parameters = spec["parameters"]
    if spec["kind"] == "stream":
        name = spec["stream"]
        if name not in STREAMS:
            return None
        # Canonical JSON has sorted the parameters; the stream has them in their order.
        fields = dataclasses.fields(STREAMS[name])  # type: ignore[arg-type]
        words += [name, *(w for field in fields for w in _option(field.name, parameters[field.name]))]
    elif spec["kind"] == "environment":
        words += ["environment", spec["stream"], *_environment_options(parameters)]
    else:
        return None
    words += ["--steps", str(spec["steps"]), "--seed", str(spec["seed"]), "-o", str(path)]
    return shlex.join(words)


def _option(key: str, value: Any) -> list[str]:
    return [f"--{key.replace('_', '-')}", value if isinstance(value, str) else json.dumps(value)]


def _as_typed(value: Any) -> str:
    """Return the text that the command line reads as this value; a text that is JSON itself goes in quotes."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


def _environment_options(parameters: Mapping[str, Any]) -> list[str]:
    words = []
    for key in ("mode", "policy", "flatten", "gamma", "action_scale"):
        if parameters.get(key) is not None:
            words += _option(key, parameters[key])
    words.append("--include-action" if parameters["include_action_in_features"] else "--no-include-action")
    for key, value in parameters["env_args"].items():
        words += ["--env-arg", f"{key}={_as_typed(value)}"]
    for name in parameters["wrappers"]:
        words += ["--wrapper", name]
    return words
