"""Chunk files: rows to bytes and back, for the three codecs, each ending in CRC-32C.

No decoder sees bytes whose header does not claim exactly the size expected: a digest proves whose bytes they are, not
that they are safe.
"""

from __future__ import annotations

import struct
import threading
from typing import Any

import google_crc32c
import numpy as np

from alberta_data.store.layout import CODECS, CRC_BYTES, ArrayLayout

# As Blosc counts them. numcodecs is imported where it packs or unpacks: it costs more than all else that reading needs.
_SHUFFLES = {"shuffle": 1, "bitshuffle": 2}
# Byte 2 of a Blosc header: which shuffle was used, whether the bytes are merely copied, and the compressor.
_SHUFFLE_FLAGS = {"shuffle": 0x1, "bitshuffle": 0x4}
_COPIED = 0x2
_COMPRESSORS = {"lz4": 1, "zstd": 4}
_HEADER = struct.Struct("<BBBBIII")
_one_at_a_time = threading.Lock()


class ChunkError(Exception):
    """A chunk file's bytes are not a chunk: `str()` says what was expected and what was found."""


def crc32c(data: np.ndarray, before: int = 0) -> int:
    """Return the CRC-32C of uint8 `data`, continuing from that of the bytes before."""
    return int(google_crc32c.extend(before, data))


def crc_bytes(crc: int) -> bytes:
    """Return the four bytes that end a chunk file."""
    return crc.to_bytes(CRC_BYTES, "little")


def compress(layout: ArrayLayout, rows: np.ndarray) -> bytes:
    """Return the Blosc form of a whole chunk (uint8, padding included), the same bytes at every call."""
    from numcodecs import blosc

    config: dict[str, Any] = CODECS[layout.codec] or {}
    # More than one Blosc thread gives other bytes at each call; the switch is the library's, for the whole process.
    with _one_at_a_time:
        before, blosc.use_threads = blosc.use_threads, False
        try:
            return bytes(
                blosc.compress(
                    rows.view(layout.stored_dtype),
                    config["cname"].encode(),
                    config["clevel"],
                    _SHUFFLES[config["shuffle"]],
                    0,
                )
            )
        finally:
            blosc.use_threads = before


def check_crc(data: np.ndarray) -> None:
    """Check the CRC-32C at the end of a chunk file.

    Raises:
        ChunkError: the file is too short for one, or it is another.
    """
    if len(data) < CRC_BYTES:
        raise ChunkError(f"expected at least {CRC_BYTES} bytes, found {len(data)}")
    expected, found = data[-CRC_BYTES:].tobytes(), crc_bytes(crc32c(data[:-CRC_BYTES]))
    if expected != found:
        raise ChunkError(f"expected CRC-32C {expected.hex()}, found {found.hex()}")


def decode(layout: ArrayLayout, data: np.ndarray) -> np.ndarray:
    """Return the rows of a chunk file as uint8, padding included; a view of `data` for the codec `none`.

    Raises:
        ChunkError: CRC, size or header are not those of this array's chunks.
    """
    check_crc(data)
    body = data[:-CRC_BYTES]
    if layout.codec == "none":
        if len(body) != layout.chunk_bytes:
            raise ChunkError(f"expected {layout.chunk_bytes} bytes of rows, found {len(body)}")
        return body
    from numcodecs import blosc

    _check_header(layout, body)
    rows = np.empty(layout.chunk_bytes, np.uint8)
    try:
        blosc.decompress(body, rows)
    except (RuntimeError, ValueError) as err:
        raise ChunkError(f"expected bytes that Blosc can decode, found others ({err})") from None
    return rows


def _check_header(layout: ArrayLayout, body: np.ndarray) -> None:
    if len(body) < _HEADER.size:
        raise ChunkError(f"expected a Blosc header of {_HEADER.size} bytes, found {len(body)}")
    version, _, flags, item, size, block, packed = _HEADER.unpack(body[: _HEADER.size].tobytes())
    config: dict[str, Any] = CODECS[layout.codec] or {}
    found = (version, item, size, packed, flags >> 5)
    expected = (2, layout.stored_dtype.itemsize, layout.chunk_bytes, len(body), _COMPRESSORS[config["cname"]])
    if found != expected or not 0 < block <= max(size, 1):
        raise ChunkError(f"expected a Blosc header (version, item, size, packed, compressor) {expected}, found {found}")
    copied = bool(flags & _COPIED)
    if copied and packed != size + _HEADER.size:
        raise ChunkError(f"expected {size + _HEADER.size} copied bytes, found {packed}")
    if not copied and flags & 0x5 & ~_SHUFFLE_FLAGS[config["shuffle"]]:
        raise ChunkError(f"expected the shuffle of codec {layout.codec}, found flags {flags:#x}")
