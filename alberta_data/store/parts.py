"""The files of a dataset, one by one: which there are, and the check of each by itself.

A file is checked against the root: its size, its SHA-256 or CRC-32C, its padding, and the leaves that lie in it whole.
A leaf that reaches over several files is checked once all of them are there (`check_spanning`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store.chunks import check_padding, damaged
from alberta_data.store.codecs import ChunkError, check_crc, crc32c, crc_bytes, decode
from alberta_data.store.layout import ArrayLayout
from alberta_data.store.leaves import LeafReader
from alberta_data.store.metadata import ROOT, FileRecord, Root, sha256_of
from alberta_data.store.sources import Source


@dataclass(frozen=True)
class Part:
    """A file of a dataset, the root apart.

    Attributes:
        path: below the dataset.
        record: what the root says of it.
        layout: of the array that it is a chunk of; None for a document.
        index: which chunk.
    """

    path: str
    record: FileRecord
    layout: ArrayLayout | None = None
    index: int = 0

    @property
    def array(self) -> str | None:
        """The array's path, for messages."""
        return self.layout.path if self.layout is not None else None

    @property
    def is_bare(self) -> bool:
        """Whether it is rows and a CRC and nothing else, so that it can be checked piece by piece."""
        return self.layout is not None and self.record.sha256 is None


def parts(root: Root) -> Iterator[Part]:
    """Yield every file that a root names, in one order for ever: by path of the array, its document, its chunks."""
    for path in sorted(root.documents):
        document = f"{path}/{ROOT}"
        yield Part(document, root.files[document])
        layout = root.layouts.get(path)
        for index in range(layout.chunks if layout is not None else 0):
            assert layout is not None
            key = layout.chunk_key(index)
            yield Part(key, root.files[key], layout, index)


def part_of(root: Root, path: str) -> Part | None:
    """Return the part of a path, or None where the root does not name it."""
    record = root.files.get(path)
    if record is None:
        return None
    array, _, chunk = path.partition("/c/")
    layout = root.layouts.get(array)
    return Part(path, record) if layout is None or not chunk else Part(path, record, layout, int(chunk.split("/")[0]))


def holds_whole_leaves(layout: ArrayLayout) -> bool:
    """Say whether no leaf of an array reaches over the end of a chunk."""
    return layout.chunks == 1 or layout.chunk_rows % layout.leaf_rows == 0


def check_part(root: Root, part: Part, data: np.ndarray) -> np.ndarray | None:
    """Check a whole file (uint8) by itself; return the decoded rows of a chunk, padding included.

    Raises:
        DamagedDatasetError: it is not what was written.
    """
    if len(data) != part.record.size:
        raise damaged(part.array, part.path, f"expected {part.record.size} bytes, found {len(data)}")
    if part.record.sha256 is not None and (found := sha256_of(data)) != part.record.sha256:
        raise damaged(part.array, part.path, f"expected SHA-256 {part.record.sha256}, found {found}")
    if part.layout is None:
        return None
    try:
        rows = decode(part.layout, data)
    except ChunkError as err:
        raise damaged(part.array, part.path, str(err)) from None
    check_padding(part.layout, part.index, rows)
    check = _Leaves(root, part)
    check.feed(rows[: check.size])
    return rows


def check_quickly(part: Part, data: np.ndarray) -> None:
    """Check a whole file (uint8) as far as its size, its SHA-256 or its CRC go, as a cache does.

    Raises:
        DamagedDatasetError: it is not what was written.
    """
    if len(data) != part.record.size:
        raise damaged(part.array, part.path, f"expected {part.record.size} bytes, found {len(data)}")
    if part.record.sha256 is not None:
        if (found := sha256_of(data)) != part.record.sha256:
            raise damaged(part.array, part.path, f"expected SHA-256 {part.record.sha256}, found {found}")
        return
    try:
        check_crc(data)
    except ChunkError as err:
        raise damaged(part.array, part.path, str(err)) from None


class _Leaves:
    """The digests of the leaves that lie whole in one chunk, as its rows come."""

    def __init__(self, root: Root, part: Part):
        layout = part.layout
        assert layout is not None
        self._part, self._layout = part, layout
        first = part.index * layout.chunk_rows
        self.size = (min(first + layout.chunk_rows, layout.rows) - first) * layout.row_bytes
        record = root.arrays.get(layout.path)
        self._expected: tuple[str, ...] = ()
        if record is not None and holds_whole_leaves(layout):
            self._expected = record.leaves[first // layout.leaf_rows :]
        self._leaf_bytes = layout.leaf_rows * layout.row_bytes
        self._at, self._hasher = 0, hashlib.sha256()

    def feed(self, rows: np.ndarray) -> None:
        """Take the next bytes of the chunk's rows."""
        while len(rows) and self._expected:
            stop = min(self._at - self._at % self._leaf_bytes + self._leaf_bytes, self.size)
            piece, rows = rows[: stop - self._at], rows[stop - self._at :]
            self._hasher.update(piece.data)
            self._at += len(piece)
            if self._at == stop:
                self._close((stop - 1) // self._leaf_bytes)

    def _close(self, number: int) -> None:
        expected, found = self._expected[number], self._hasher.hexdigest()
        self._hasher = hashlib.sha256()
        if found != expected:
            row = self._part.index * self._layout.chunk_rows + number * self._layout.leaf_rows
            said = f"rows from {row} on: expected SHA-256 {expected}, found {found}"
            raise damaged(self._part.array, self._part.path, said)


class BareCheck:
    """The check of a bare chunk, piece by piece, while each lies in the processor's cache.

    Args:
        root: of the dataset.
        part: a bare one.
    """

    def __init__(self, root: Root, part: Part):
        layout = part.layout
        assert layout is not None
        self._part, self._layout = part, layout
        self._leaves = _Leaves(root, part)
        self._body = layout.chunk_bytes
        self._at = self._crc = 0
        self._tail = b""

    def feed(self, piece: np.ndarray) -> None:
        """Take the next bytes of the file (uint8).

        Raises:
            DamagedDatasetError: they are not what was written.
        """
        for stop, take in ((self._leaves.size, self._take_rows), (self._body, self._take_padding)):
            if self._at < stop and len(piece):
                now, piece = piece[: stop - self._at], piece[stop - self._at :]
                self._crc = crc32c(now, self._crc)
                take(now)
                self._at += len(now)
        self._at += len(piece)
        self._tail = (self._tail + piece.tobytes())[:8]

    def finish(self) -> None:
        """Check what can be told only at the end: size and CRC.

        Raises:
            DamagedDatasetError: they are not what was written.
        """
        if self._at != self._part.record.size:
            raise self._damaged(f"expected {self._part.record.size} bytes, found {self._at}")
        if (expected := crc_bytes(self._crc)) != self._tail:
            raise self._damaged(f"expected CRC-32C {expected.hex()}, found {self._tail.hex()}")

    def _take_rows(self, piece: np.ndarray) -> None:
        self._leaves.feed(piece)

    def _take_padding(self, piece: np.ndarray) -> None:
        fill = self._layout.padding(1)
        phase = (self._at - self._leaves.size) % len(fill)
        if not np.array_equal(np.resize(np.roll(fill, -phase), len(piece)), piece):
            raise self._damaged("expected the fill value after the last row, found other bytes")

    def _damaged(self, said: str) -> DamagedDatasetError:
        return damaged(self._part.array, self._part.path, said)


def check_spanning(source: Source, root: Root) -> None:
    """Check the leaves that reach over several files, once all are there.

    Raises:
        DamagedDatasetError: one is not what was written; its first chunk is named.
    """
    for name in root.arrays:
        layout = root.layouts[name]
        if holds_whole_leaves(layout):
            continue
        reader = LeafReader(source, root, name)
        for start in range(0, layout.rows, layout.leaf_rows):
            stop = min(start + layout.leaf_rows, layout.rows)
            reader.read(start, stop, np.empty((stop - start) * layout.row_bytes, np.uint8))
