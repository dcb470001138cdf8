"""The rows of one array on their way into chunk files: each byte is hashed once and copied once.

Rows go into a file beside the chunk's own name, which the chunk takes once it is whole and synced: a file under a
chunk's name is a whole chunk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.store import disk
from alberta_data.store.codecs import compress, crc32c, crc_bytes
from alberta_data.store.layout import ArrayLayout
from alberta_data.store.metadata import FileRecord, sha256_of

WRITING = ".writing"
# Small enough to be hashed, summed and copied while it lies in the processor's cache.
_PIECE = 256 * 2**10


@dataclass(frozen=True)
class FinishedChunk:
    """A chunk file that is written but neither synced nor named.

    Attributes:
        layout: of the array.
        index: of the chunk.
        end: the row after its last one.
        fd: descriptor of the file, open.
        record: its size and, where the root will hold one, its digest.
    """

    layout: ArrayLayout
    index: int
    end: int
    fd: int
    record: FileRecord

    def publish(self, folder: Path) -> None:
        """Sync the file and give it its name below `folder`; the folders are still to be synced."""
        try:
            disk.protect(self.fd)
            disk.sync(self.fd)
        finally:
            disk.close(self.fd)
        final = folder / self.layout.chunk_key(self.index)
        disk.rename(final.with_name(final.name + WRITING), final)


def as_bytes(layout: ArrayLayout, rows: np.ndarray) -> np.ndarray:
    """Return rows as one-dimensional uint8, without a copy where they lie in order.

    Raises:
        ArgumentError: dtype or shape of a row are not the array's.
    """
    check_rows(layout, rows)
    return np.ascontiguousarray(rows, layout.stored_dtype).reshape(-1).view(np.uint8)


def check_rows(layout: ArrayLayout, rows: np.ndarray) -> None:
    """Check that rows are of an array's dtype and shape.

    Raises:
        ArgumentError: they are not.
    """
    if rows.dtype.name != layout.dtype or rows.shape[1:] != layout.shape[1:]:
        raise ArgumentError(
            f"rows of {layout.path} must be {layout.dtype} of shape {layout.shape[1:]}, "
            f"got {rows.dtype.name} of shape {rows.shape[1:]}"
        )


class _BareChunk:
    """A chunk of codec `none`: its rows go straight into the file."""

    def __init__(self, folder: Path, layout: ArrayLayout, index: int, hashed: bool):
        self._fd = _create(folder, layout, index)
        self._crc = self._size = 0
        self._digest = hashlib.sha256() if hashed else None

    def put(self, piece: np.ndarray) -> None:
        self._crc = crc32c(piece, self._crc)
        self._write(piece)

    def finish(self) -> tuple[int, FileRecord]:
        self._write(crc_bytes(self._crc))
        fd, self._fd = self._fd, -1
        return fd, FileRecord(self._size, self._digest.hexdigest() if self._digest else None)

    def close(self) -> None:
        if self._fd >= 0:
            disk.close(self._fd)
            self._fd = -1

    def _write(self, data: np.ndarray | bytes) -> None:
        if self._digest:
            self._digest.update(data)
        disk.write_all(self._fd, data, self._size)
        self._size += len(data)


class _PackedChunk:
    """A chunk of a compressing codec: its rows are gathered, then compressed at once."""

    def __init__(self, folder: Path, layout: ArrayLayout, index: int):
        self._place = folder, layout, index
        self._layout = layout
        self._rows = np.empty(layout.chunk_bytes, np.uint8)
        self._filled = 0

    def put(self, piece: np.ndarray) -> None:
        self._rows[self._filled : self._filled + len(piece)] = piece
        self._filled += len(piece)

    def finish(self) -> tuple[int, FileRecord]:
        body = compress(self._layout, self._rows)
        data = body + crc_bytes(crc32c(np.frombuffer(body, np.uint8)))
        fd = _create(*self._place)
        try:
            disk.write_all(fd, data, 0)
        except BaseException:
            disk.close(fd)
            raise
        return fd, FileRecord(len(data), sha256_of(data))

    def close(self) -> None:
        self._filled = 0


def _create(folder: Path, layout: ArrayLayout, index: int) -> int:
    """Create the file that a chunk is written into, and the folders of its key."""
    final = folder / layout.chunk_key(index)
    for parent in reversed(chunk_folders(folder, layout, index)[:-1]):
        if not parent.is_dir():
            disk.make_folder(parent)
    return disk.create(final.with_name(final.name + WRITING))


def chunk_folders(folder: Path, layout: ArrayLayout, index: int) -> list[Path]:
    """Return the folders between a chunk file and its array's folder, innermost first: `c/3`, `c`."""
    final = folder / layout.chunk_key(index)
    return list(final.parents)[: len(layout.shape)]


class RowWriter:
    """Writes the rows of one array, in order.

    Args:
        folder: the dataset's folder; the array's folder and its `c` are there.
        layout: how the rows lie.
        row: the first row that will come; a leaf begins with it.
        written_from: the first of these rows that goes into a file; a chunk begins with it.
        hash_leaves: keep a digest of each leaf, in `new_leaves`.
        hash_files: give each file's record a digest.
    """

    def __init__(
        self,
        folder: Path,
        layout: ArrayLayout,
        *,
        row: int = 0,
        written_from: int = 0,
        hash_leaves: bool = True,
        hash_files: bool = False,
    ):
        self.layout = layout
        self.row = row
        self.new_leaves: list[str] = []
        self._folder = folder
        self._written_from = written_from
        self._leaf: Any = hashlib.sha256() if hash_leaves else None
        self._hash_files = hash_files
        self._chunk: _BareChunk | _PackedChunk | None = None

    def feed(self, data: np.ndarray) -> Iterator[FinishedChunk]:
        """Take the bytes of whole rows and yield each chunk that they finish.

        Args:
            data: uint8, one-dimensional; must not change until the iterator is done.
        """
        layout = self.layout
        while len(data):
            stop = min(self.row + len(data) // layout.row_bytes, self._next_stop())
            size = (stop - self.row) * layout.row_bytes
            self._take(data[:size])
            data, self.row = data[size:], stop
            if self._leaf is not None and (stop % layout.leaf_rows == 0 or stop == layout.rows):
                self.new_leaves.append(self._leaf.hexdigest())
                self._leaf = hashlib.sha256()
            if self._chunk is not None and (stop % layout.chunk_rows == 0 or stop == layout.rows):
                yield self._finish_chunk(self._chunk)

    def close(self) -> None:
        """Let go of an unfinished chunk; its file stays under its temporary name."""
        if self._chunk is not None:
            self._chunk.close()
            self._chunk = None

    def _next_stop(self) -> int:
        """Return the next row at which a leaf, a chunk or the array ends, or writing begins."""
        layout, row = self.layout, self.row
        leaf_end = row - row % layout.leaf_rows + layout.leaf_rows
        chunk_end = row - row % layout.chunk_rows + layout.chunk_rows
        return min(layout.rows, leaf_end, chunk_end if row >= self._written_from else self._written_from)

    def _take(self, data: np.ndarray) -> None:
        if self._chunk is None and self.row >= self._written_from:
            self._chunk = self._new_chunk(self.row // self.layout.chunk_rows)
        for first in range(0, len(data), _PIECE):
            piece = data[first : first + _PIECE]
            if self._leaf is not None:
                self._leaf.update(piece)
            if self._chunk is not None:
                self._chunk.put(piece)

    def _new_chunk(self, index: int) -> _BareChunk | _PackedChunk:
        if self.layout.codec == "none":
            return _BareChunk(self._folder, self.layout, index, self._hash_files)
        return _PackedChunk(self._folder, self.layout, index)

    def _finish_chunk(self, chunk: _BareChunk | _PackedChunk) -> FinishedChunk:
        layout = self.layout
        index, filled = (self.row - 1) // layout.chunk_rows, (self.row - 1) % layout.chunk_rows + 1
        missing, most = layout.chunk_rows - filled, max(_PIECE // layout.row_bytes, 1)
        for done in range(0, missing, most):
            chunk.put(layout.padding(min(most, missing - done)))
        fd, record = chunk.finish()
        self._chunk = None
        return FinishedChunk(layout, index, self.row, fd, record)
