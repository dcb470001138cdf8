"""The journal of an unfinished dataset: what is on disk for sure, and the state to go on from.

One line of JSON for the header, then one for every block or group of blocks whose rows are written and synced. A line
carries its own digest, so a torn one is known for what it is and dropped, with whatever follows it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.store import canonical, disk
from alberta_data.store.layout import DTYPES
from alberta_data.store.metadata import FileRecord, sha256_of

JOURNAL = "journal.jsonl"
_HEAD, _TAIL = b'{"entry":', b',"sha256":"'
_END = len(_TAIL) + 64 + len(b'"}\n')

State = Mapping[str, np.ndarray]


def state_to_json(state: State) -> dict[str, Any]:
    """Return path → dtype, shape and exact bytes."""
    return {path: _array_to_json(np.asarray(value)) for path, value in state.items()}


def _array_to_json(value: np.ndarray) -> dict[str, Any]:
    stored = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "base64": base64.b64encode(stored.tobytes()).decode("ascii"),
    }


def state_from_json(entry: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the state that `state_to_json` wrote."""
    return {path: _array_from_json(value) for path, value in entry.items()}


def _array_from_json(entry: Mapping[str, Any]) -> np.ndarray:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"dtype of a state must be one of {', '.join(DTYPES)}, got {entry['dtype']!r}")
    dtype = np.dtype(entry["dtype"])
    data = base64.b64decode(entry["base64"])
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(entry["shape"])


@dataclass
class Line:
    """What holds once the rows before step `end` are on disk.

    Attributes:
        end: the step after the last one vouched for.
        leaves: array → digests of the leaves completed since the line before.
        files: path → record of the chunk files completed since the line before, where the root will hold a digest.
        rows: array of unknown length → its rows so far and the CRC-32C of their bytes.
        state: the state before step `end`, as JSON.
    """

    end: int
    leaves: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the line's entry."""
        return {
            "end": self.end,
            "leaves": self.leaves,
            "files": {path: record.to_json() for path, record in self.files.items()},
            "rows": {name: list(pair) for name, pair in self.rows.items()},
            "state": self.state,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Line:
        """Return the line that an entry describes."""
        files = {path: FileRecord(e["size"], e.get("sha256")) for path, e in entry["files"].items()}
        rows = {name: (count, crc) for name, (count, crc) in entry["rows"].items()}
        return cls(entry["end"], entry["leaves"], files, rows, entry["state"])

    def absorb(self, later: Line) -> None:
        """Become one line with the one after it: its end and state, both lines' digests."""
        for name, leaves in later.leaves.items():
            self.leaves.setdefault(name, []).extend(leaves)
        self.files.update(later.files)
        self.end, self.rows, self.state = later.end, later.rows, later.state


def encode(entry: Mapping[str, Any]) -> bytes:
    """Return a line of the journal: the entry and its digest."""
    body = canonical.dumps(entry)
    return b"".join((_HEAD, body, _TAIL, sha256_of(body).encode(), b'"}\n'))


def entries(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each whole entry of a journal with the offset after it, up to the first that is torn."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            body = line[len(_HEAD) : -_END]
            if line != b"".join((_HEAD, body, _TAIL, sha256_of(body).encode(), b'"}\n')):
                return
            offset += len(line)
            yield json.loads(body), offset


class JournalFile:
    """The journal, open for adding lines.

    Args:
        path: the file, whose header is written and synced.
        size: the bytes of its whole lines; anything after them is cut off.
    """

    def __init__(self, path: Path, size: int):
        self._fd = disk.reopen(path)
        self._offset = size
        try:
            disk.truncate(self._fd, size)
            disk.sync(self._fd)
        except BaseException:
            self.close()
            raise

    def add(self, lines: list[Line]) -> None:
        """Write some lines and wait until they are on the disk."""
        data = b"".join(encode(line.to_json()) for line in lines)
        disk.write_all(self._fd, data, self._offset)
        disk.sync(self._fd)
        self._offset += len(data)

    def close(self) -> None:
        """Close the file; it stays for a later writer."""
        if self._fd >= 0:
            disk.close(self._fd)
            self._fd = -1
