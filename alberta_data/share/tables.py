"""A dataset as a table: a row a step, a named column a number; and the three forms of text and columns for it."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.store.metadata import Root

# Digits that tell every number of a dtype from its neighbours.
_DIGITS = {"float16": 5, "float32": 9, "float64": 17}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")


class Sink(Protocol):
    """Where bytes go, in order."""

    def write(self, data: Any) -> int:
        """Take some bytes and return how many."""
        ...


@dataclass(frozen=True)
class Column:
    """A column of the table: a number of each row of an array."""

    name: str
    array: str
    index: int
    dtype: str

    def values(self, block: Block) -> np.ndarray:
        """Return the column's numbers of a block."""
        rows = block.arrays[self.array]
        return np.ascontiguousarray(rows.reshape(len(rows), -1)[:, self.index])


def columns_of(root: Root, names: list[str]) -> list[Column]:
    """Return the columns of some arrays with a row a step, the targets' last, no name twice."""
    found: list[Column] = []
    for array in sorted(names, key=lambda name: name == "targets"):
        record = root.arrays[array]
        width = int(np.prod(record.shape[1:], dtype=np.int64)) if len(record.shape) > 1 else 1
        one = array.removesuffix("s")
        usual = [one] if width == 1 else [f"{one}_{index}" for index in range(width)]
        given = record.columns if record.columns is not None and len(record.columns) == width else None
        found += [Column(name, array, index, record.dtype) for index, name in enumerate(given or usual)]
    found = _renamed(found, lambda column: f"{column.array}.{column.name}")
    return _renamed(found, lambda column: f"{column.array}.{column.index}.{column.name}")


def _renamed(columns: list[Column], name: Callable[[Column], str]) -> list[Column]:
    """Return the columns, those whose names stand twice under other ones."""
    counts = Counter(column.name for column in columns)
    return [column if counts[column.name] == 1 else replace(column, name=name(column)) for column in columns]


def write_csv(root: Root, columns: list[Column], blocks: Iterator[Block], sink: Sink) -> None:
    """Write comma-separated text, a header first; every number can be read back exactly."""
    sink.write(",".join(_csv_name(column.name) for column in columns).encode() + b"\r\n")
    for lines in _lines(columns, blocks, "\r\n", lambda column: _number_format(column, "%s")):
        sink.write(lines.encode())


def write_arff(root: Root, columns: list[Column], blocks: Iterator[Block], sink: Sink) -> None:
    """Write ARFF as MOA and Weka read it: the last attribute is the target; missing numbers are `?`.

    Raises:
        ArgumentError: a number is infinite, for which ARFF has no text.
    """
    head = [f"% alberta-data id {root.id}", f"@relation {_arff_name(str(root.spec['stream']))}", ""]
    for column in columns:
        kind = "{False,True}" if column.dtype == "bool" else "numeric"
        head.append(f"@attribute {_arff_name(column.name)} {kind}")
    sink.write("\n".join([*head, "", "@data", ""]).encode())

    def checked() -> Iterator[Block]:
        for block in blocks:
            for column in columns:
                rows = block.arrays[column.array]
                if rows.dtype.kind == "f" and np.isinf(rows).any():
                    raise ArgumentError(
                        f"numbers in ARFF must not be infinite, got one in {column.array}: take Parquet"
                    )
            yield block

    for lines in _lines(columns, checked(), "\n", lambda column: _number_format(column, "%s")):
        sink.write(re.sub(r"\bnan\b", "?", lines).encode())


def write_parquet(root: Root, columns: list[Column], blocks: Iterator[Block], sink: Sink) -> None:
    """Write Parquet, a row group a block, dtypes kept; spec and id stand in the schema's metadata.

    Raises:
        UnavailableError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnavailableError(
            "Parquet needs pyarrow, which is not installed: pip install 'alberta-data[parquet]'"
        ) from None
    told = {"alberta_data": json.dumps({"id": root.id, "spec": dict(root.spec)})}
    fields = [(column.name, pyarrow.from_numpy_dtype(np.dtype(column.dtype))) for column in columns]
    schema = pyarrow.schema(fields, metadata=told)
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for block in blocks:
            arrays = [pyarrow.array(column.values(block)) for column in columns]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=len(block))


def _lines(columns: list[Column], blocks: Iterator[Block], end: str, form: Callable[[Column], str]) -> Iterator[str]:
    row = ",".join(form(column) for column in columns) + end
    most = max(1, 2**18 // len(columns))
    for block in blocks:
        values = [column.values(block) for column in columns]
        for first in range(0, len(block), most):
            lists = [part[first : first + most].tolist() for part in values]
            yield row * len(lists[0]) % tuple(itertools.chain.from_iterable(zip(*lists, strict=True)))


def _number_format(column: Column, other: str) -> str:
    digits = _DIGITS.get(column.dtype)
    return other if digits is None else f"%.{digits}g"


def _csv_name(name: str) -> str:
    return name if not set(name) & set(',"\r\n') else '"' + name.replace('"', '""') + '"'


def _arff_name(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    shown = "".join(c if c.isprintable() else "_" for c in name)
    return "'" + shown.replace("\\", "\\\\").replace("'", "\\'") + "'"
