"""Zip archives written so that the same files always give the same bytes.

No date, no owner, no compression, one order; ZIP64 only where a number needs it. A file's CRC is known when its bytes
have passed, so its header is written after them, into the room left before them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import numpy as np

from alberta_data.store import disk

# 1 January 1980, midnight: the first moment that the format knows.
_TIME, _DATE = 0, 0x21
_VERSION, _VERSION_64 = 20, 45
_UNIX = 3 << 8
_FILE_MODE = 0o100444 << 16
_MOST_32, _MOST_16 = 0xFFFFFFFF, 0xFFFF
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_PIECE = 2**20


class ArchiveWriter:
    """Writes an archive into a file that is open for writing and empty.

    Args:
        fd: descriptor of the file.
    """

    def __init__(self, fd: int):
        self._fd = fd
        self._end = 0
        self._central: list[bytes] = []

    def add(self, name: str, data: np.ndarray | bytes) -> None:
        """Add a file of less than 4 GiB."""
        data = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        encoded, start = name.encode("ascii"), self._end
        at = start + _LOCAL.size + len(encoded)
        crc = 0
        for piece in _pieces(data):
            crc = zlib.crc32(piece.data, crc)
            disk.write_all(self._fd, piece, at)
            at += len(piece)
        sizes = (crc, len(data), len(data))
        local = _LOCAL.pack(b"PK\3\4", _VERSION, 0, 0, _TIME, _DATE, *sizes, len(encoded), 0)
        disk.write_all(self._fd, local + encoded, start)
        self._central.append(_central_entry(encoded, sizes, start))
        self._end = at

    def finish(self) -> None:
        """Write the directory at the end."""
        directory = b"".join(self._central)
        disk.write_all(self._fd, directory + _end(len(self._central), len(directory), self._end), self._end)


def _pieces(data: np.ndarray) -> Iterable[np.ndarray]:
    for first in range(0, len(data), _PIECE):
        yield data[first : first + _PIECE]


def _central_entry(name: bytes, sizes: tuple[int, int, int], offset: int) -> bytes:
    wide = offset >= _MOST_32
    extra = struct.pack("<2HQ", 1, 8, offset) if wide else b""
    needed = _VERSION_64 if wide else _VERSION
    head = (b"PK\1\2", _UNIX | needed, needed, 0, 0, _TIME, _DATE, *sizes, len(name), len(extra))
    return _CENTRAL.pack(*head, 0, 0, 0, _FILE_MODE, min(offset, _MOST_32)) + name + extra


def _end(count: int, size: int, offset: int) -> bytes:
    wide = b""
    if count >= _MOST_16 or size >= _MOST_32 or offset >= _MOST_32:
        record = (_END_64.size - 12, _UNIX | _VERSION_64, _VERSION_64, 0, 0, count, count, size, offset)
        wide = _END_64.pack(b"PK\6\6", *record) + _LOCATOR.pack(b"PK\6\7", 0, offset + size, 1)
    few = min(count, _MOST_16)
    return wide + _END.pack(b"PK\5\6", 0, 0, few, few, min(size, _MOST_32), min(offset, _MOST_32), 0)
