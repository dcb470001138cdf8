"""The rows of one array, read in whole leaves: every leaf is checked before any row of it is handed on."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store.chunks import check_size, damaged, read_chunk, read_exactly, read_file
from alberta_data.store.codecs import crc32c, crc_bytes
from alberta_data.store.layout import CRC_BYTES, ArrayLayout
from alberta_data.store.metadata import FileRecord, Root
from alberta_data.store.sources import Source

# Hashed and summed while it lies in the processor's cache; a distant source is asked for more at once.
_PIECE = 512 * 2**10


class LeafReader:
    """Reads an array's rows; not for several threads at once.

    Args:
        source: where the files are.
        root: of the dataset.
        name: of the array, one of `root.arrays`.
    """

    def __init__(self, source: Source, root: Root, name: str):
        self.layout: ArrayLayout = root.layouts[name]
        self._source, self._name = source, name
        self._leaves = root.arrays[name].leaves
        self._files = root.files
        self._decoded: tuple[int, np.ndarray] | None = None
        # CRC of the chunk whose rows have been read from its first one on: index, rows so far, CRC of them.
        self._running = (-1, 0, 0)

    def around(self, start: int, stop: int) -> tuple[int, int]:
        """Return the rows of the whole leaves that hold rows `start` to `stop`."""
        rows = self.layout.leaf_rows
        return start - start % rows, min(-(-stop // rows) * rows, self.layout.rows)

    def read(self, start: int, stop: int, into: np.ndarray) -> None:
        """Fill `into` with the bytes of rows `start` to `stop`, which are whole leaves, and check them.

        Args:
            start: first row, at the start of a leaf.
            stop: at the start of a leaf, or the end.
            into: uint8, as long as those rows.

        Raises:
            DamagedDatasetError: a file or a leaf is not what was written.
        """
        layout = self.layout
        for first in range(start, stop, layout.leaf_rows):
            hasher, row, last = hashlib.sha256(), first, min(first + layout.leaf_rows, stop)
            while row < last:
                index = row // layout.chunk_rows
                end = min(last, (index + 1) * layout.chunk_rows)
                part = into[(row - start) * layout.row_bytes : (end - start) * layout.row_bytes]
                self._read_part(index, row - index * layout.chunk_rows, part, hasher)
                row = end
            expected, found = self._leaves[first // layout.leaf_rows], hasher.hexdigest()
            if found != expected:
                self._blame(first)
                raise leaf_damage(layout, first, expected, found)

    def _blame(self, first: int) -> None:
        """Raise for the chunk that is damaged by itself, of those that hold the leaf of row `first`."""
        layout = self.layout
        last = min(first + layout.leaf_rows, layout.rows) - 1
        for index in range(first // layout.chunk_rows, last // layout.chunk_rows + 1):
            read_chunk(self._source, layout, index, self._files[layout.chunk_key(index)])

    def _read_part(self, index: int, row: int, into: np.ndarray, hasher: Any) -> None:
        """Fill `into` from a chunk's row `row` on, and add it to the digest of its leaf."""
        layout = self.layout
        if layout.codec == "none":
            self._read_bare(index, row, into, hasher)
            return
        if self._decoded is None or self._decoded[0] != index:
            self._decoded = None
            record = self._files[layout.chunk_key(index)]
            self._decoded = index, read_chunk(self._source, layout, index, record)
        at = row * layout.row_bytes
        into[:] = self._decoded[1][at : at + len(into)]
        hasher.update(into)

    def _read_bare(self, index: int, row: int, into: np.ndarray, hasher: Any) -> None:
        """Do so for codec `none`; a chunk read from its first row to its last one has its CRC and padding checked."""
        layout, key = self.layout, self.layout.chunk_key(index)
        before = (index, 0, 0) if row == 0 else self._running
        whole_so_far, crc = before[:2] == (index, row), before[2]
        if row == 0 or not whole_so_far:
            check_size(self._source, self._name, key, layout.most_file_bytes)
        size = _PIECE if self._source.local else len(into)
        for first in range(0, len(into), size):
            piece = into[first : first + size]
            read_exactly(self._source, self._name, key, piece, row * layout.row_bytes + first)
            hasher.update(piece)
            crc = crc32c(piece, crc) if whole_so_far else 0
        end = row + len(into) // layout.row_bytes
        self._running = (index, end, crc) if whole_so_far else (-1, 0, 0)
        if whole_so_far and end == min(layout.chunk_rows, layout.rows - index * layout.chunk_rows):
            check_tail(self._source, layout, index, end * layout.row_bytes, crc)


def leaf_damage(layout: ArrayLayout, first: int, expected: str, found: str) -> DamagedDatasetError:
    """Return the error for the leaf that begins with row `first`, at the chunk in which it begins."""
    last = min(first + layout.leaf_rows, layout.rows) - 1
    where, end = (layout.chunk_key(row // layout.chunk_rows) for row in (first, last))
    rows = f"rows {first} to {last}" + (f", which end in chunk {end!r}" if end != where else "")
    return damaged(layout.path, where, f"{rows}: expected SHA-256 {expected}, found {found}")


def check_tail(source: Source, layout: ArrayLayout, index: int, end: int, crc: int) -> None:
    """Read and check what follows the rows of a bare chunk: padding and CRC-32C.

    Args:
        source: where the files are.
        layout: of the array.
        index: which chunk.
        end: bytes of its rows.
        crc: CRC-32C of its rows.

    Raises:
        DamagedDatasetError: it is other than was written.
    """
    key = layout.chunk_key(index)
    padding_end = layout.most_file_bytes - CRC_BYTES
    as_written = True
    if end < padding_end:
        fill = layout.padding(max(1, min(_PIECE, padding_end - end) // layout.row_bytes))
        piece = np.empty_like(fill)
        for at in range(end, padding_end, len(fill)):
            now = piece[: padding_end - at]
            read_exactly(source, layout.path, key, now, at)
            crc = crc32c(now, crc)
            as_written = as_written and np.array_equal(now, fill[: len(now)])
    tail = np.empty(CRC_BYTES, np.uint8)
    read_exactly(source, layout.path, key, tail, padding_end)
    if (expected := crc_bytes(crc)) != (found := tail.tobytes()):
        raise damaged(layout.path, key, f"expected CRC-32C {expected.hex()}, found {found.hex()}")
    if not as_written:
        raise damaged(layout.path, key, "expected the fill value after the last row, found other bytes")


def check_document(source: Source, root: Root, path: str) -> None:
    """Check an array's own `zarr.json` against the root.

    Raises:
        DamagedDatasetError: it is not there, or other than the root says.
    """
    record: FileRecord = root.files[f"{path}/zarr.json"]
    read_file(source, path, f"{path}/zarr.json", record)
