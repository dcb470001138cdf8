"""How the rows of an array lie in files: leaves, chunks, codecs, and the Zarr v3 document that says so.

An array's document follows from its shape, dtype, chunk rows, codec and dimension names alone; the reader makes it
again from these five and refuses any document that differs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError, RefusedError

CODECS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "fast": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle"},
    "small": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle"},
}
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
MAX_STEPS = 2**53 - 1
MAX_CHUNK_BYTES = 2**30
CRC_BYTES = 4
_LEAF_ROWS, _LEAF_BYTES = 65_536, 8 * 2**20
_CHUNK_ROWS, _CHUNK_BYTES, _LEAST_HALVED_ROWS = 2**18, 32 * 2**20, 2**15
# What Blosc adds at most to bytes that it could not make fewer.
_BLOSC_OVERHEAD = 16
_NAME = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_TAKEN = ("checkpoints", "zarr.json", "journal.jsonl")
_SECOND_DIMENSION = {"observations": "feature", "final_observations": "feature", "targets": "target"}


def is_name(text: Any) -> bool:
    """Say whether `text` may name an array, a group or a dimension: `[A-Za-z0-9._+-]{1,64}`, not `.` or `..`."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None and text not in (".", "..")


def leaf_rows(row_bytes: int) -> int:
    """Return the rows under one digest: the largest power of two, at most 65,536, that takes at most 8 MiB."""
    return min(_LEAF_ROWS, _power_of_two(_LEAF_BYTES // row_bytes))


def default_chunk_rows(rows: int, row_bytes: int) -> int:
    """Return the rows of a chunk file where nobody asked for another number.

    The largest power of two, at most 2^18, that takes at most 32 MiB; all rows where there are fewer; halved, not
    below 2^15, while the last chunk would be more than half empty.
    """
    chunk = min(_CHUNK_ROWS, _power_of_two(_CHUNK_BYTES // row_bytes))
    if rows <= chunk:
        return rows
    while chunk // 2 >= _LEAST_HALVED_ROWS and 0 < rows % chunk < chunk / 2:
        chunk //= 2
    return chunk


def _power_of_two(limit: int) -> int:
    return 1 << max(limit.bit_length() - 1, 0)


@dataclass(frozen=True)
class ArrayDeclaration:
    """What is known of an array before its first row.

    Attributes:
        name: its name in the dataset, `[A-Za-z0-9._+-]{1,64}`.
        dtype: one of `DTYPES`.
        row_shape: the shape of one row, `()` for a number a step.
        dimension_names: a name for every axis, the first included; left empty, the usual ones.
        columns: the names of the last axis' entries, where they have any.
        by_step: whether there is one row a step; otherwise the rows are counted at the end.
    """

    name: str
    dtype: str
    row_shape: tuple[int, ...]
    dimension_names: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    by_step: bool = True

    def __post_init__(self) -> None:
        """Check the fields and fill in the dimension names.

        Raises:
            ArgumentError: a field is out of its range.
        """
        if not is_name(self.name) or self.name.startswith(".") or self.name in _TAKEN:
            raise ArgumentError(f"an array's name must be [A-Za-z0-9._+-]{{1,64}} and not taken, got {self.name!r}")
        if self.dtype not in DTYPES:
            raise ArgumentError(f"dtype of {self.name} must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        object.__setattr__(self, "row_shape", tuple(int(n) for n in self.row_shape))
        if any(n < 1 for n in self.row_shape) or len(self.row_shape) > 8:
            raise ArgumentError(f"row_shape of {self.name} must have axes of 1 or more, got {self.row_shape}")
        names = tuple(self.dimension_names) or self._usual_names()
        object.__setattr__(self, "dimension_names", names)
        if len(names) != 1 + len(self.row_shape) or not all(map(is_name, names)) or len(set(names)) != len(names):
            raise ArgumentError(f"dimension_names of {self.name} must be one a dimension, all different, got {names}")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
            if len(self.columns) != (self.row_shape[-1] if self.row_shape else 1):
                raise ArgumentError(f"columns of {self.name} must be as many as its last axis, got {len(self.columns)}")

    def _usual_names(self) -> tuple[str, ...]:
        first = "step" if self.by_step else "episode"
        second = _SECOND_DIMENSION.get(self.name, "component")
        return (first, second, *(f"axis{n}" for n in range(2, 1 + len(self.row_shape))))[: 1 + len(self.row_shape)]

    def laid_out(self, rows: int, chunk_steps: int | None, codec: str) -> ArrayLayout:
        """Return the layout of this array with `rows` rows; `chunk_steps` sets the chunk rows, at most all rows."""
        chunk = default_chunk_rows(rows, row_bytes(self.dtype, self.row_shape))
        if chunk_steps is not None:
            chunk = min(chunk_steps, rows)
        return ArrayLayout(self.name, self.dtype, (rows, *self.row_shape), chunk, codec, self.dimension_names)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "row_shape": list(self.row_shape),
            "dimension_names": list(self.dimension_names),
            "columns": None if self.columns is None else list(self.columns),
            "by_step": self.by_step,
        }


def row_bytes(dtype: str, row_shape: tuple[int, ...]) -> int:
    """Return the bytes of one row."""
    return np.dtype(dtype).itemsize * math.prod(row_shape)


@dataclass(frozen=True)
class ArrayLayout:
    """Where the rows of one array lie.

    Attributes:
        path: the array's path below the dataset, `observations` or `checkpoints/key`.
        dtype: one of `DTYPES`.
        shape: rows first.
        chunk_rows: rows in a chunk file; the last one is padded with the fill value.
        codec: `none`, `fast` or `small`.
        dimension_names: one for every axis.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    chunk_rows: int
    codec: str
    dimension_names: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The dtype of the rows on disk: little-endian."""
        return np.dtype(self.dtype).newbyteorder("<")

    @cached_property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return row_bytes(self.dtype, self.shape[1:])

    @cached_property
    def leaf_rows(self) -> int:
        """The rows under one digest; the last leaf may have fewer."""
        return leaf_rows(self.row_bytes)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return -(-self.rows // self.leaf_rows)

    @property
    def chunks(self) -> int:
        """The number of chunk files."""
        return -(-self.rows // self.chunk_rows)

    @property
    def chunk_bytes(self) -> int:
        """The bytes of a chunk's rows, padding included, before the codec."""
        return self.chunk_rows * self.row_bytes

    @property
    def most_file_bytes(self) -> int:
        """The size of a chunk file; for a compressing codec, the size that it cannot pass."""
        return self.chunk_bytes + CRC_BYTES + (0 if self.codec == "none" else _BLOSC_OVERHEAD)

    def chunk_key(self, index: int) -> str:
        """Return the path of a chunk file below the dataset: `observations/c/3/0`."""
        return "/".join((self.path, "c", str(index), *("0" for _ in self.shape[1:])))

    def padding(self, rows: int) -> np.ndarray:
        """Return `rows` rows of the fill value as uint8, one-dimensional."""
        fill = np.nan if np.dtype(self.dtype).kind == "f" else 0
        return np.full(rows * self.row_bytes // self.stored_dtype.itemsize, fill, self.stored_dtype).view(np.uint8)

    def document(self) -> dict[str, Any]:
        """Return the array's `zarr.json` as a JSON value."""
        codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        blosc = CODECS[self.codec]
        if blosc is not None:
            item = np.dtype(self.dtype).itemsize
            codecs.append({"name": "blosc", "configuration": {**blosc, "typesize": item, "blocksize": 0}})
        codecs.append({"name": "crc32c"})
        kind = np.dtype(self.dtype).kind
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": [self.chunk_rows, *self.shape[1:]]},
            },
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": "NaN" if kind == "f" else False if kind == "b" else 0,
            "codecs": codecs,
            "attributes": {},
            "dimension_names": list(self.dimension_names),
        }

    @classmethod
    def from_document(cls, path: str, document: Any) -> ArrayLayout:
        """Return the layout that a `zarr.json` describes.

        Raises:
            RefusedError: it is not a document that this layout would write.
        """
        try:
            layout = cls._read(path, document)
        except (KeyError, TypeError, ValueError, IndexError):
            raise RefusedError(f"{path}/zarr.json must be an array of format 1, got another kind: refused") from None
        if layout.document() != document or _types(layout.document()) != _types(document):
            raise RefusedError(f"{path}/zarr.json must be an array of format 1, got other entries: refused")
        return layout

    @classmethod
    def _read(cls, path: str, document: Mapping[str, Any]) -> ArrayLayout:
        dtype, shape = document["data_type"], document["shape"]
        if dtype not in DTYPES:
            raise RefusedError(f"dtype of {path} must be one of {', '.join(DTYPES)}, got another: refused")
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"][0]
        names = tuple(document["dimension_names"])
        if not all(type(n) is int and 1 <= n <= MAX_STEPS for n in (*shape, chunk)) or not 1 <= len(shape) <= 9:
            raise RefusedError(f"shape and chunks of {path} must be integers from 1 to 2^53 - 1, got others: refused")
        if len(names) != len(shape) or not all(map(is_name, names)):
            raise RefusedError(f"dimension_names of {path} must be [A-Za-z0-9._+-]{{1,64}}, got others: refused")
        asked = [entry["configuration"] for entry in document["codecs"] if entry["name"] == "blosc"]
        cname = asked[0]["cname"] if asked else None
        codec = {None: "none", "lz4": "fast", "zstd": "small"}.get(cname)
        if codec is None or any(entry["name"] not in ("bytes", "blosc", "crc32c") for entry in document["codecs"]):
            raise RefusedError(f"codec of {path} must be one of {', '.join(CODECS)}, got another: refused")
        layout = cls(path, dtype, tuple(shape), chunk, codec, names)
        if chunk > layout.rows or layout.chunk_bytes > MAX_CHUNK_BYTES:
            raise RefusedError(f"a chunk of {path} must take at most 1 GiB, got {layout.chunk_bytes} bytes: refused")
        return layout


def _types(value: Any) -> Any:
    """Return the shape of a JSON value's types, in which `1`, `1.0` and `true` differ."""
    if isinstance(value, dict):
        return {key: _types(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_types(inner) for inner in value]
    return type(value).__name__
