"""A dataset in another form: Parquet, npz, CSV, ARFF, Minari.

Rows are checked as they are read, a block at a time is in memory, and the file has its name when all of it is there.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, DestinationError
from alberta_data.share.minari_form import write_minari
from alberta_data.share.opening import opened
from alberta_data.share.packing import locked
from alberta_data.share.tables import Sink, columns_of, write_arff, write_csv, write_parquet
from alberta_data.store import disk
from alberta_data.store.reader import Store

FORMATS = ("parquet", "npz", "csv", "arff", "minari")
_PARTIAL = ".partial"
_WRITE_SIZE = 2**20

Progress = Callable[[int, int], None]


def export(
    dataset: Any,
    path: Path | str,
    format: str | None = None,
    *,
    names: Iterable[str] | None = None,
    start: int = 0,
    stop: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a dataset, or some steps of it, in another form; return the path.

    Args:
        dataset: a path, an address, or a dataset that is open.
        path: of the file; for Minari, of a folder. Nothing may lie there.
        format: `parquet`, `npz`, `csv` (9 digits for float32, 17 for float64), `arff` (the target last, as MOA reads
            it) or `minari` (datasets of environments, whole); by default what the path ends in.
        names: arrays; by default all. Tables hold those with a row a step.
        start: first step.
        stop: the step after the last one; by default the end.
        progress: called with steps done and all steps.

    Raises:
        ArgumentError: an unknown format, array or step; a dataset that the form cannot hold.
        DestinationError: something lies at the path.
        DamagedDatasetError: what is read is not what was written; nothing is left.
        StorageError: the disk failed; nothing is left.
        UnavailableError: the package that the form needs is not installed.
    """
    path = Path(path)
    form = format if format is not None else path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise ArgumentError(f"format must be one of {', '.join(FORMATS)}, got {form!r}")
    if os.path.lexists(path):
        raise DestinationError(f"destination of an export must be free, got something at {path}: take another name")
    with opened(dataset) as store:
        arrays = _names(store, names)
        stop = store.root.steps if stop is None else stop
        if not 0 <= start < stop <= store.root.steps:
            raise ArgumentError(f"steps must be from 0 to {store.root.steps}, got {start} to {stop}")
        try:
            if form == "minari":
                if (start, stop) != (0, store.root.steps) or names is not None:
                    raise ArgumentError("an export to Minari must be of all steps and arrays, got some")
                write_minari(store, path, progress)
            else:
                with _Sink(path) as sink:
                    _WRITERS[form](store, arrays, start, stop, sink, progress)
                    sink.finish()
        except OSError as err:
            raise disk.failure(err, path) from err
    return path


def _names(store: Store, names: Iterable[str] | None) -> list[str]:
    known = store.root.arrays
    found = list(known) if names is None else list(dict.fromkeys(names))
    if not found or not set(found) <= set(known):
        raise ArgumentError(f"names must be some of {', '.join(known)}, got {found}")
    return found


def _blocks(store: Store, names: list[str], start: int, stop: int, progress: Progress | None) -> Iterator[Block]:
    with store.blocks(start, stop, names) as blocks:
        for block in blocks:
            yield block
            if progress is not None:
                progress(block.stop - start, stop - start)


class _Write(Protocol):
    def __call__(
        self, store: Store, names: list[str], start: int, stop: int, sink: Sink, progress: Progress | None
    ) -> None: ...


def _table(write: Callable[..., None]) -> _Write:
    def work(store: Store, names: list[str], start: int, stop: int, sink: Sink, progress: Progress | None) -> None:
        by_step = [name for name in names if store.by_step(name)]
        if not by_step:
            raise ArgumentError(f"a table must hold an array with a row a step, got {', '.join(names)}: take npz")
        write(store.root, columns_of(store.root, by_step), _blocks(store, by_step, start, stop, progress), sink)

    return work


def _write_npz(store: Store, names: list[str], start: int, stop: int, sink: Sink, progress: Progress | None) -> None:
    """Write arrays one after another, so that a block at a time is in memory."""
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        for name in names:
            layout = store.root.layouts[name]
            by_step = store.by_step(name)
            rows = stop - start if by_step else layout.rows
            header = {"descr": layout.stored_dtype.str, "fortran_order": False, "shape": (rows, *layout.shape[1:])}
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                if not by_step:
                    for first in range(0, rows, layout.leaf_rows):
                        file.write(store.read(name, first, min(first + layout.leaf_rows, rows)).tobytes())
                    continue
                for block in _blocks(store, [name], start, stop, progress):
                    file.write(np.ascontiguousarray(block.arrays[name], layout.stored_dtype).tobytes())


_WRITERS: dict[str, _Write] = {
    "parquet": _table(write_parquet),
    "csv": _table(write_csv),
    "arff": _table(write_arff),
    "npz": _write_npz,
}


class _Sink:
    """A file beside its name, which it gets at the end; nothing is left of it otherwise."""

    closed = False

    def __init__(self, path: Path):
        self._path, self._writing = path, path.with_name(path.name + _PARTIAL)
        disk.make_parents(path)
        self._fd = locked(self._writing)
        self._at, self._named = 0, False
        self._waiting = bytearray()

    def write(self, data: Any) -> int:
        """Take some bytes and return how many."""
        self._waiting += data
        if len(self._waiting) >= _WRITE_SIZE:
            self._drain()
        return len(memoryview(data).cast("B")) if not isinstance(data, bytes) else len(data)

    def tell(self) -> int:
        """Return how many bytes were taken."""
        return self._at + len(self._waiting)

    def seekable(self) -> bool:
        """Say that bytes are taken in order alone."""
        return False

    def flush(self) -> None:
        """Nothing has to be seen before the end."""

    def close(self) -> None:
        """Nothing: `finish` is the end."""

    def finish(self) -> None:
        """Sync the file and give it its name, if that is still free."""
        self._drain()
        disk.sync(self._fd)
        if os.path.lexists(self._path):
            raise DestinationError(f"destination of an export must be free, got something new at {self._path}")
        disk.rename(self._writing, self._path)
        self._named = True
        disk.sync_folder(self._path.absolute().parent)

    def _drain(self) -> None:
        disk.write_all(self._fd, bytes(self._waiting), self._at)
        self._at += len(self._waiting)
        self._waiting.clear()

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self._named:
                disk.unlink(self._writing)
        finally:
            disk.close(self._fd)
