"""Rows of an array whose length is known only at the end: kept in one plain file until then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store import disk
from alberta_data.store.codecs import crc32c
from alberta_data.store.layout import ArrayDeclaration
from alberta_data.store.rows import as_bytes

SUFFIX = ".rows"
_PIECE = 4 * 2**20


class PlainRows:
    """The file of one such array, open for adding rows.

    Args:
        folder: the unfinished dataset.
        declaration: of the array.
        rows: the rows that the journal vouches for.
        crc: the CRC-32C of their bytes.

    Raises:
        DamagedDatasetError: the file does not hold those rows.
    """

    def __init__(self, folder: Path, declaration: ArrayDeclaration, rows: int = 0, crc: int = 0):
        self._path = plain_path(folder, declaration.name)
        self._layout = declaration.laid_out(1, None, "none")
        self._rows, self._crc, self._dirty = rows, crc, False
        there = self._path.exists()
        self._fd = disk.reopen(self._path) if there else disk.create(self._path)
        try:
            if not there:
                disk.sync_folder(folder)
            disk.truncate(self._fd, rows * self._layout.row_bytes)
            self._check()
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> tuple[int, int]:
        """The rows so far and the CRC-32C of their bytes."""
        return self._rows, self._crc

    def feed(self, rows: np.ndarray) -> None:
        """Add rows at the end."""
        data = as_bytes(self._layout, rows)
        disk.write_all(self._fd, data, self._rows * self._layout.row_bytes)
        self._rows, self._crc, self._dirty = self._rows + len(rows), crc32c(data, self._crc), True

    def sync(self) -> None:
        """Wait until the rows are on the disk."""
        if self._dirty:
            self._dirty = False
            disk.sync(self._fd)

    def close(self) -> None:
        """Close the file; it stays for a later writer."""
        if self._fd >= 0:
            disk.close(self._fd)
            self._fd = -1

    def _check(self) -> None:
        crc = 0
        for piece in pieces(self._path, self._layout.row_bytes):
            crc = crc32c(piece, crc)
        if crc != self._crc:
            raise DamagedDatasetError(
                f"{self._path.name} must have the CRC-32C {self._crc:08x}, found {crc:08x}: "
                f"delete {self._path.parent} and begin again",
                array=self._layout.path,
                chunk=self._path.name,
            )


def plain_path(folder: Path, name: str) -> Path:
    """Return the path of the plain file of an array."""
    return folder / f".{name}{SUFFIX}"


def pieces(path: Path, row_bytes: int) -> Iterator[np.ndarray]:
    """Yield the bytes of a plain file, some whole rows at a time, as uint8."""
    size = max(_PIECE // row_bytes, 1) * row_bytes
    with path.open("rb") as file:
        while data := file.read(size):
            yield np.frombuffer(data, np.uint8)
