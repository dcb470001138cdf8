"""Where datasets lie and what they are called: the name says what is in one."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from alberta_data.errors import ArgumentError
from alberta_data.store.canonical import dumps
from alberta_data.store.reader import open_store
from alberta_data.streams.base import Stream
from alberta_data.streams.registry import is_registered
from alberta_data.streams.scaled import ScaledStreamWrapper

MAX_NAME = 120
SUFFIX = ".zarr"
PACKED_SUFFIX = ".zarr.zip"


def data_folder(data_dir: Path | str | None = None) -> Path:
    """Return the folder that datasets go to: the one given, else `ALBERTA_DATA_DIR`, else `./datasets`."""
    return Path(data_dir or os.environ.get("ALBERTA_DATA_DIR") or "datasets")


def spec_digest(spec: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a spec, 64 hex digits. It is not the dataset's id."""
    return hashlib.sha256(dumps(spec)).hexdigest()


def steps_text(steps: int) -> str:
    """Return `1e7` for 10,000,000 and `300001` for 300,001: one digit and at least three zeros, or all digits."""
    digits = str(steps)
    stripped = digits.rstrip("0")
    zeros = len(digits) - len(stripped)
    return f"{stripped}e{zeros}" if len(stripped) == 1 and zeros >= 3 else digits


def dataset_name(stream: Any, steps: int, seed: int, *, feature_dim: int | None = None) -> str:
    """Return the file name of a dataset: `<stream>[-<parameter><value>…]-d<features>-<steps>-s<seed>.zarr`.

    Only parameters that differ from their defaults stand in it, in their order. A name over 120 characters has its
    middle replaced by 8 digits of the digest of what was there.

    Args:
        stream: one of the streams or environments; of a stream of one's own the class name.
        steps: its length.
        seed: its seed.
        feature_dim: features of a step where `stream` does not know them.
    """
    features = stream.feature_dim if feature_dim is None else feature_dim
    words = "-".join(_words(stream))
    tail = f"-d{features}-{steps_text(steps)}-s{seed}{SUFFIX}"
    head = re.sub(r"[^A-Za-z0-9._+-]+", "-", words).lstrip(".-") or "stream"
    if len(head) + len(tail) > MAX_NAME:
        digest = hashlib.sha256(words.encode()).hexdigest()[:8]
        head = f"{head[: MAX_NAME - len(tail) - 9]}-{digest}"
    return head + tail


def _words(stream: Any) -> list[str]:
    if isinstance(stream, ScaledStreamWrapper):
        digest = hashlib.sha256(dumps(stream.to_json()["feature_scales"])).hexdigest()[:8]
        return ["scaled", *_words(stream.inner_stream), f"scales{digest}"]
    if not hasattr(stream, "definition") or (isinstance(stream, Stream) and not is_registered(stream)):
        return [type(stream).__name__]
    fields = getattr(type(stream), "__dataclass_fields__", {})
    parameters = stream.to_json()
    changed = [
        f"{name.replace('_', '-')}{_value(parameters[name])}"
        for name, field in fields.items()
        if name in parameters and name != "feature_dim" and parameters[name] != _default(field)
    ]
    return [stream.definition()["stream"], *changed]


def _default(field: Any) -> Any:
    import dataclasses

    if field.default_factory is not dataclasses.MISSING:
        found = field.default_factory()
        return list(found) if isinstance(found, tuple) else found
    return list(field.default) if isinstance(field.default, tuple) else field.default


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "-on" if value else "-off"
    if isinstance(value, dict):
        return "-" + "-".join(f"{key}-{value[key]}" for key in value)
    if isinstance(value, (list, tuple)):
        return "-" + "-".join(map(str, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return f"-{value}" if isinstance(value, str) else str(value)


def find(place: Path | str, data_dir: Path | str | None = None) -> Path:
    """Return the path of a dataset that is named by its path, its name in the data folder, or 8 digits of its id.

    Args:
        place: path, name (with or without `.zarr`), or 8 or more first digits of an id.
        data_dir: the data folder; see `data_folder`.

    Raises:
        ArgumentError: nothing is named so, or more than one dataset's id begins so.
    """
    text, folder = str(place), data_folder(data_dir)
    candidates = [Path(text), folder / text, folder / f"{text}{SUFFIX}", folder / f"{text}{PACKED_SUFFIX}"]
    for path in candidates:
        if text and (os.path.lexists(path) or os.path.lexists(f"{path}.partial")):
            return path
    if re.fullmatch(r"[0-9a-f]{8,64}", text):
        return _by_id(text, folder)
    raise ArgumentError(
        f"a dataset must be named by its path, its name in {folder}, or 8 digits of its id, got {text!r}: "
        "`alberta-data list` shows those there are"
    )


def _by_id(digits: str, folder: Path) -> Path:
    from alberta_data.errors import AlbertaDataError

    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")) + sorted(folder.glob(f"*{PACKED_SUFFIX}")):
        try:
            with open_store(path) as store:
                if store.root.id.startswith(digits):
                    found.append(path)
        except (AlbertaDataError, OSError):
            continue
    if not found:
        raise ArgumentError(
            f"no dataset in {folder} has an id that begins with {digits}: `alberta-data list` shows them"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ArgumentError(f"{len(found)} datasets have an id that begins with {digits} ({names}): give more digits")
    return found[0]
