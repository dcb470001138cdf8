"""One file of a dataset, read whole and checked: size, digest or CRC, decoded, padding."""

from __future__ import annotations

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store.codecs import ChunkError, decode
from alberta_data.store.layout import ArrayLayout
from alberta_data.store.metadata import FileRecord, sha256_of
from alberta_data.store.sources import MissingFileError, Source


def damaged(array: str | None, chunk: str, said: str) -> DamagedDatasetError:
    """Return the error for damage in one place: array, chunk, what was expected and what was found."""
    where = f"array {array!r}, chunk {chunk!r}" if array else f"file {chunk!r}"
    return DamagedDatasetError(
        f"{where} must be as it was written: {said}; fetch or make the dataset again", array=array, chunk=chunk
    )


def read_file(source: Source, array: str | None, key: str, record: FileRecord) -> np.ndarray:
    """Return the bytes of a file as uint8 after its size and, where there is one, its digest.

    Raises:
        DamagedDatasetError: it is not there, or other than recorded.
    """
    check_size(source, array, key, record.size)
    data = np.empty(record.size, np.uint8)
    read_exactly(source, array, key, data, 0)
    if record.sha256 is not None and (found := sha256_of(data)) != record.sha256:
        raise damaged(array, key, f"expected SHA-256 {record.sha256}, found {found}")
    return data


def check_size(source: Source, array: str | None, key: str, expected: int) -> None:
    """Check that a file is there and has the size expected.

    Raises:
        DamagedDatasetError: it is not, or has not.
    """
    try:
        found = source.size(key)
    except MissingFileError as err:
        raise damaged(array, key, f"expected {expected} bytes, found {err}") from None
    if found != expected:
        raise damaged(array, key, f"expected {expected} bytes, found {found}")


def read_exactly(source: Source, array: str | None, key: str, into: np.ndarray, start: int) -> None:
    """Fill `into` (uint8) with a file's bytes from `start` on.

    Raises:
        DamagedDatasetError: the file is not there or has fewer.
    """
    try:
        found = source.readinto(key, memoryview(into), start)
    except MissingFileError as err:
        raise damaged(array, key, f"expected {start + len(into)} bytes, found {err}") from None
    if found != len(into):
        raise damaged(array, key, f"expected {start + len(into)} bytes, found {start + found}")


def read_chunk(source: Source, layout: ArrayLayout, index: int, record: FileRecord) -> np.ndarray:
    """Return the rows of a chunk as uint8, padding included and checked; leaves are for the caller to check.

    Raises:
        DamagedDatasetError: the file is not there, or not what was written.
    """
    key = layout.chunk_key(index)
    data = read_file(source, layout.path, key, record)
    try:
        rows = decode(layout, data)
    except ChunkError as err:
        raise damaged(layout.path, key, str(err)) from None
    check_padding(layout, index, rows)
    return rows


def check_padding(layout: ArrayLayout, index: int, rows: np.ndarray) -> None:
    """Check that the rows after the array's last one are the fill value.

    Raises:
        DamagedDatasetError: they are not.
    """
    missing = (index + 1) * layout.chunk_rows - layout.rows
    if missing > 0:
        tail = rows[-missing * layout.row_bytes :]
        if not np.array_equal(tail, layout.padding(missing)):
            raise damaged(layout.path, layout.chunk_key(index), "expected the fill value after the last row")
