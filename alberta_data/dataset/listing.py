"""The datasets of a folder, finished and unfinished."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.dataset.naming import PACKED_SUFFIX, SUFFIX, data_folder
from alberta_data.errors import AlbertaDataError
from alberta_data.store import open_store
from alberta_data.streams.registry import STREAMS

PARTIAL = ".partial"


@dataclass(frozen=True)
class Entry:
    """A dataset of a folder.

    Attributes:
        path: where it lies.
        name: its file name.
        spec: all that determines its numbers; empty where it cannot be read.
        id: of a finished dataset, else None.
        features: width of an observation, or None.
        size: bytes of a finished dataset's files, or None.
        done: share of the steps that are on disk for sure, 0 … 1; 1 for a finished one.
        resume: the command that goes on with an unfinished one, or None.
        error: what is wrong with it, or None.
    """

    path: Path
    name: str
    spec: Mapping[str, Any]
    id: str | None = None
    features: int | None = None
    size: int | None = None
    done: float = 1.0
    resume: str | None = None
    error: str | None = None


def list_datasets(folder: Path | str | None = None) -> list[Entry]:
    """Return the datasets of a folder, in the order of their names.

    Args:
        folder: by default the data folder.
    """
    base = data_folder(folder)
    found = [*base.glob(f"*{SUFFIX}"), *base.glob(f"*{PACKED_SUFFIX}"), *base.glob(f"*{SUFFIX}{PARTIAL}")]
    return [_unfinished(path) if path.name.endswith(PARTIAL) else _finished(path) for path in sorted(found)]


def _finished(path: Path) -> Entry:
    try:
        with open_store(path) as store:
            root = store.root
            shape = root.layouts["observations"].shape if "observations" in root.layouts else (0, 1)
            width = 1
            for length in shape[1:]:
                width *= length
            return Entry(path, path.name, root.spec, root.id, width, root.size + len(store.root_bytes))
    except (AlbertaDataError, OSError) as err:
        return Entry(path, path.name, {}, error=str(err))


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
