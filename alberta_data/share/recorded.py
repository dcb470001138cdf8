"""Files of a team's own, read a block of rows at a time: Parquet, npz, CSV. No pickle, no code, dtypes as they are."""

from __future__ import annotations

import csv
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.store.layout import DTYPES

BLOCK_ROWS = 65_536
_TRUE, _FALSE = {"true", "1", "t", "yes"}, {"false", "0", "f", "no"}


class Recorded(ABC):
    """A file with named columns of one length.

    Args:
        path: of the file.
        names: the columns that are wanted.
        dtype: for text, which has none of its own.

    Attributes:
        rows: how many.
        dtypes: name → NumPy's name of the dtype.
        shapes: name → shape of one row's value.

    Raises:
        ArgumentError: a column that is not there or cannot be stored, no such file.
    """

    rows: int
    dtypes: dict[str, str]
    shapes: dict[str, tuple[int, ...]]

    def __init__(self, path: Path, names: Sequence[str], dtype: str | None):
        self.path, self.names = path, list(names)
        if dtype is not None and dtype not in DTYPES:
            raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")

    @abstractmethod
    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield name → values, some rows at a time, from the first on."""

    def _check_names(self, known: Sequence[str]) -> None:
        if missing := [name for name in self.names if name not in known]:
            shown = ", ".join(list(known)[:20])
            raise ArgumentError(f"columns must be some of {shown} of {self.path.name}, got {missing[0]!r:.80}")
        if len(set(known)) != len(known):
            raise ArgumentError(f"columns of {self.path.name} must have different names, got one twice")

    def _storable(self, name: str, dtype: Any) -> str:
        found = str(np.dtype(dtype).name) if not isinstance(dtype, str) else dtype
        if found not in DTYPES:
            raise ArgumentError(f"dtype of column {name!r:.80} must be one of {', '.join(DTYPES)}, got {found:.40}")
        return found


class ParquetFile(Recorded):
    """A Parquet file; lists of a fixed size are columns with a shape."""

    def __init__(self, path: Path, names: Sequence[str], dtype: str | None):
        super().__init__(path, names, dtype)
        if dtype is not None:
            raise ArgumentError(f"dtype must be left out where the file has its own, got {dtype} for {path.name}")
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise UnavailableError(
                "Parquet needs pyarrow, which is not installed: pip install 'alberta-data[parquet]'"
            ) from None
        try:
            self._file = parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError) as err:
            raise ArgumentError(f"{path} must be a Parquet file, got one that cannot be read: {_first(err)}") from None
        schema = self._file.schema_arrow
        self._check_names(schema.names)
        self.rows, self.dtypes, self.shapes = self._file.metadata.num_rows, {}, {}
        for name in self.names:
            kind, shape = schema.field(name).type, tuple[int, ...]()
            if pyarrow.types.is_fixed_size_list(kind):
                kind, shape = kind.value_type, (kind.list_size,)
            try:
                dtype = kind.to_pandas_dtype()
            except NotImplementedError:  # NumPy has none: it is refused by the name that the file gives it
                dtype = str(kind)
            self.dtypes[name] = self._storable(name, dtype)
            self.shapes[name] = shape

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield name → values, some rows at a time."""
        import pyarrow

        try:
            for batch in self._file.iter_batches(BLOCK_ROWS, columns=self.names):
                yield {name: self._values(name, batch.column(name)) for name in self.names}
        except (pyarrow.ArrowException, OSError) as err:
            raise ArgumentError(f"{self.path} must be a whole Parquet file, got a damaged one: {_first(err)}") from None

    def _values(self, name: str, column: Any) -> np.ndarray:
        inner = column.flatten() if self.shapes[name] else column
        if column.null_count or inner.null_count:
            raise ArgumentError(
                f"column {name!r:.80} must hold a value in every row, got a missing one: fill or drop it"
            )
        values = inner.to_numpy(zero_copy_only=False)
        return np.asarray(values, self.dtypes[name]).reshape(len(column), *self.shapes[name])


class NpzFile(Recorded):
    """An npz file; an array may have any shape, its first axis is the step."""

    def __init__(self, path: Path, names: Sequence[str], dtype: str | None):
        super().__init__(path, names, dtype)
        if dtype is not None:
            raise ArgumentError(f"dtype must be left out where the file has its own, got {dtype} for {path.name}")
        self.dtypes, self.shapes, self._orders = {}, {}, {}
        counts = set()
        try:
            with zipfile.ZipFile(path) as archive:
                self._check_names([name.removesuffix(".npy") for name in archive.namelist()])
                for name in self.names:
                    with archive.open(f"{name}.npy") as file:
                        shape, fortran, kind = _header(file)
                    if not shape:
                        raise ArgumentError(f"array {name!r:.80} must have a row a step, got a single value")
                    self.dtypes[name], self.shapes[name] = self._storable(name, kind), shape[1:]
                    self._orders[name] = fortran and len(shape) > 1
                    counts.add(shape[0])
        except (zipfile.BadZipFile, OSError, ValueError, EOFError) as err:
            if isinstance(err, ArgumentError):
                raise
            raise ArgumentError(f"{path} must be an npz file, got one that cannot be read: {_first(err)}") from None
        if len(counts) != 1:
            raise ArgumentError(f"arrays must be of one length, got {', '.join(map(str, sorted(counts)))}")
        self.rows = counts.pop()

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield name → values, some rows at a time."""
        try:
            with zipfile.ZipFile(self.path) as archive, ExitStack() as opened:
                files = {name: opened.enter_context(archive.open(f"{name}.npy")) for name in self.names}
                readers = {name: self._reader(file, name) for name, file in files.items()}
                for start in range(0, self.rows, BLOCK_ROWS):
                    count = min(BLOCK_ROWS, self.rows - start)
                    yield {name: read(count) for name, read in readers.items()}
        except (zipfile.BadZipFile, EOFError, ValueError) as err:
            if isinstance(err, ArgumentError):
                raise
            raise ArgumentError(f"{self.path} must be a whole npz file, got a damaged one: {_first(err)}") from None

    def _reader(self, file: Any, name: str) -> Any:
        if self._orders[name]:
            whole, at = np.lib.format.read_array(file, allow_pickle=False), 0

            def take(count: int) -> np.ndarray:
                nonlocal at
                at += count
                return np.asarray(whole[at - count : at], self.dtypes[name])

            return take
        shape, _, kind = _header(file)

        def read(count: int) -> np.ndarray:
            size = count * int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
            data = file.read(size)
            if len(data) != size:
                raise EOFError("it ends early")
            return np.asarray(np.frombuffer(data, kind), self.dtypes[name]).reshape(count, *shape[1:])

        return read


class CsvFile(Recorded):
    """A comma-separated file with a header; numbers are read as `dtype`, float64 where none is given."""

    def __init__(self, path: Path, names: Sequence[str], dtype: str | None):
        super().__init__(path, names, dtype)
        kind = dtype or "float64"
        with self._open() as file:
            lines = csv.reader(file)
            header = self._next(lines)
            if header is None:
                raise ArgumentError(f"{path} must begin with a line of column names, got an empty file")
            self._header = [name.strip() for name in header]
            self._check_names(self._header)
            self.rows = 0
            while (row := self._next(lines)) is not None:
                self.rows += bool(row)
        self.dtypes, self.shapes = dict.fromkeys(self.names, kind), dict.fromkeys(self.names, ())

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield name → values, some rows at a time."""
        wanted = [self._header.index(name) for name in self.names]
        with self._open() as file:
            lines = csv.reader(file)
            self._next(lines)
            waiting: list[list[str]] = []
            while (row := self._next(lines)) is not None:
                if not row:
                    continue
                if len(row) != len(self._header):
                    where, wide = f"line {lines.line_num} of {self.path.name}", len(self._header)
                    raise ArgumentError(f"{where} must have {wide} values, got {len(row)}")
                waiting.append([row[index] for index in wanted])
                if len(waiting) == BLOCK_ROWS:
                    yield self._block(waiting, lines.line_num)
                    waiting = []
            if waiting:
                yield self._block(waiting, lines.line_num)

    def _block(self, rows: list[list[str]], last: int) -> dict[str, np.ndarray]:
        columns = list(zip(*rows, strict=True))
        return {name: self._parsed(name, texts, last) for name, texts in zip(self.names, columns, strict=True)}

    def _parsed(self, name: str, texts: tuple[str, ...], last: int) -> np.ndarray:
        dtype = np.dtype(self.dtypes[name])
        try:
            if dtype.kind == "b":
                return np.array([_flag(text) for text in texts])
            if dtype.kind in "iu":
                return np.array([_whole(text) for text in texts], dtype)
            return _floats(texts, dtype)
        except (ValueError, OverflowError):
            wrong = next((text for text in texts if not _fits(text, dtype)), "another value")
            raise ArgumentError(
                f"column {name!r:.80} of {self.path.name} must hold {dtype.name} alone, got {wrong!r:.40} "
                f"before line {last + 1}"
            ) from None

    def _open(self) -> Any:
        return self.path.open(encoding="utf-8-sig", newline="")

    def _next(self, lines: Any) -> list[str] | None:
        try:
            return next(lines, None)
        except (csv.Error, UnicodeDecodeError) as err:
            raise ArgumentError(f"{self.path} must be comma-separated text, got other bytes: {_first(err)}") from None


KINDS: dict[str, type[Recorded]] = {".parquet": ParquetFile, ".pq": ParquetFile, ".npz": NpzFile, ".csv": CsvFile}


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype of an npy file that has just been opened."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of npy")
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ArgumentError("an npz file must hold numbers, got an array of objects: it would need pickle")
    return shape, fortran, dtype


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(text)
    return word in _TRUE


def _whole(text: str) -> int:
    if "_" in text:  # Python's own digits, not those of a file.
        raise ValueError(text)
    return int(text)


def _floats(texts: tuple[str, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return numbers; one that is too large for the dtype is no infinity."""
    values = np.array([float(text) for text in texts], np.float64)
    with np.errstate(over="ignore"):
        found = values.astype(dtype)
    for index in np.flatnonzero(np.isinf(found)):
        if texts[index].strip().lower().lstrip("+-") not in ("inf", "infinity"):
            raise OverflowError(texts[index])
    if any("_" in text for text in texts):
        raise ValueError("_")
    return found


def _fits(text: str, dtype: np.dtype[Any]) -> bool:
    try:
        if dtype.kind == "b":
            _flag(text)
        elif dtype.kind in "iu":
            np.array([_whole(text)], dtype)
        else:
            _floats((text,), dtype)
    except (ValueError, OverflowError):
        return False
    return True


def _first(err: BaseException) -> str:
    return " ".join(str(err).split())[:200]
