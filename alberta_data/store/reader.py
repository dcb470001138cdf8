"""Opens a finished dataset and hands on nothing that has not been checked against its id.

    with open_store("abrupt.zarr") as store:
        for block in store.blocks():
            ...

Nothing is opened, imported or run that a dataset names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS
from alberta_data.errors import (
    AlbertaDataError,
    ArgumentError,
    DamagedDatasetError,
    IncompleteDatasetError,
    RefusedError,
    StorageError,
)
from alberta_data.store import canonical
from alberta_data.store.checking import Report, verify
from alberta_data.store.chunks import read_chunk
from alberta_data.store.destination import partial_path
from alberta_data.store.journal import JOURNAL
from alberta_data.store.leaves import LeafReader, check_document
from alberta_data.store.metadata import CHECKPOINTS, ROOT, Root
from alberta_data.store.replaying import BlockReader
from alberta_data.store.sources import FolderSource, MissingFileError, Source, is_address, read
from alberta_data.store.zipped import ZipSource

_V2_NAMES = (".zarray", ".zgroup", ".zattrs")
_BLOCK_STEPS, _BLOCK_BYTES = 65_536, 32 * 2**20


class Store:
    """A finished dataset, open for reading; see `open_store`.

    Attributes:
        source: where its files are.
        root: its root, checked.
        root_bytes: the bytes of its `zarr.json`.
    """

    def __init__(self, source: Source):
        self.source = source
        self.root_bytes = _root_bytes(source)
        self.root = Root.from_bytes(self.root_bytes)
        self._documents_checked: set[str] = set()
        if source.local:
            _refuse_v2(source, self.root)

    @property
    def name(self) -> str:
        """The place it is read from, for messages."""
        return self.source.name

    def read(self, array: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return rows `start` to `stop` of an array, in memory of their own.

        Args:
            array: one of `root.arrays`.
            start: first row.
            stop: the row after the last one; None for the end.

        Raises:
            ArgumentError: no such array or rows.
            DamagedDatasetError: what is read is not what was written.
        """
        reader = self._reader(array)
        layout = reader.layout
        stop = layout.rows if stop is None else stop
        _check_range(start, stop, layout.rows, f"rows of {array}")
        first, last = reader.around(start, stop)
        data = np.empty((last - first) * layout.row_bytes, np.uint8)
        reader.read(first, last, data)
        rows = data.view(layout.stored_dtype).reshape(-1, *layout.shape[1:])[start - first : stop - first]
        return rows if 2 * len(rows) > last - first else rows.copy()

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        names: Iterable[str] | None = None,
        *,
        block_steps: int | None = None,
        ahead: int = 2,
    ) -> BlockReader:
        """Return an iterator over blocks, read ahead and checked on a thread.

        A block's arrays are read-only and lie at multiples of 64 bytes where it starts with a leaf. They are views of
        buffers that are used again once nobody holds them, so memory stays flat for whoever lets go of blocks.

        Args:
            start: first step.
            stop: the step after the last one; None for the end.
            names: arrays, all with a row a step; None for all of these.
            block_steps: blocks end at its multiples and at `stop`; None for 65,536, or fewer where rows are wide.
                A power of two needs no copy.
            ahead: blocks that are read ahead.

        Raises:
            ArgumentError: an argument is out of its range.
            DamagedDatasetError: from the iterator, in place of the block that is damaged.
        """
        names = [name for name in self.root.arrays if self.by_step(name)] if names is None else list(names)
        if not names or not all(name in self.root.arrays and self.by_step(name) for name in names):
            raise ArgumentError(f"names must be of arrays with a row a step, got {names}")
        stop = self.root.steps if stop is None else stop
        _check_range(start, stop, self.root.steps, "steps")
        if block_steps is None:
            most = _BLOCK_BYTES // sum(self.root.layouts[name].row_bytes for name in names)
            block_steps = min(_BLOCK_STEPS, 1 << max(most.bit_length() - 1, 0))
        if block_steps < 1 or ahead < 1:
            raise ArgumentError(f"block_steps and ahead must be at least 1, got {block_steps} and {ahead}")
        readers = {name: self._reader(name) for name in names}
        return BlockReader(readers, start, stop, block_steps, ahead=ahead)

    def by_step(self, array: str) -> bool:
        """Say whether an array has a row a step."""
        return self.root.layouts[array].dimension_names[0] == "step"

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether the stream's state is kept every 2^17 steps."""
        return any(path.startswith(f"{CHECKPOINTS}/") for path in self.root.layouts)

    def checkpoint(self, step: int) -> tuple[int, dict[str, np.ndarray]]:
        """Return the last checkpoint at or before a step: its step, and path → array; empty where none are kept.

        Raises:
            ArgumentError: the step is not one of the dataset's, or its end.
            DamagedDatasetError: a checkpoint is not what was written.
        """
        if not 0 <= step <= self.root.steps:
            raise ArgumentError(f"step must be from 0 to {self.root.steps}, got {step}")
        row = min(step // CHECKPOINT_STEPS, -(-self.root.steps // CHECKPOINT_STEPS) - 1)
        state = {}
        for path, layout in self.root.layouts.items():
            if not path.startswith(f"{CHECKPOINTS}/"):
                continue
            index = row // layout.chunk_rows
            data = read_chunk(self.source, layout, index, self.root.files[layout.chunk_key(index)])
            at = (row - index * layout.chunk_rows) * layout.row_bytes
            value = data[at : at + layout.row_bytes].view(layout.stored_dtype).reshape(layout.shape[1:])
            state[path.removeprefix(f"{CHECKPOINTS}/")] = value.copy()
        return row * CHECKPOINT_STEPS, state

    def verify(
        self, *, quick: bool = False, progress: Callable[[int, int], None] | None = None, workers: int = 2
    ) -> Report:
        """Check every byte of every file, and return all that is wrong.

        Args:
            quick: sizes alone.
            progress: called now and then with the bytes checked and the bytes of all.
            workers: threads.
        """
        return verify(self.source, self.root, quick=quick, progress=progress, workers=workers)

    def close(self) -> None:
        """Let go of the source."""
        self.source.close()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _reader(self, array: str) -> LeafReader:
        if array not in self.root.arrays:
            raise ArgumentError(f"array must be one of {', '.join(self.root.arrays)}, got {array!r:.80}")
        if array not in self._documents_checked:
            check_document(self.source, self.root, array)
            self._documents_checked.add(array)
        return LeafReader(self.source, self.root, array)


def open_store(place: Path | str | Source) -> Store:
    """Open a finished dataset: a folder, a zip of one, an address (see `addresses`), or any other source.

    Raises:
        ArgumentError: there is nothing at the path, or something else.
        IncompleteDatasetError: it is not finished.
        RefusedError: not a dataset of ours, an unknown format, or something that format 1 does not allow.
        StorageError: the path cannot be read.
        DamagedDatasetError: the root is not what was written.
    """
    if is_address(place):
        from alberta_data.store.addresses import local_path, open_address

        place = local_path(str(place)) or open_address(str(place))
    try:
        source = _source(Path(place)) if isinstance(place, str | os.PathLike) else place
    except OSError as err:
        if isinstance(err, AlbertaDataError):
            raise
        raise StorageError(f"opening {place} failed: {err.strerror}; check the path and its permissions") from None
    try:
        return Store(source)
    except BaseException:
        source.close()
        raise


def _source(path: Path) -> Source:
    if path.is_dir():
        _check_finished(path)
        return FolderSource(path)
    if path.is_file():
        return ZipSource(path)
    if partial_path(path).is_dir():
        raise IncompleteDatasetError(f"{path} is not finished: the command that began it goes on with it")
    raise ArgumentError(f"there must be a dataset at the path given, got nothing at {path}")


def _check_finished(path: Path) -> None:
    if path.name.endswith(".partial") or (path / JOURNAL).exists():
        raise IncompleteDatasetError(f"{path} is not finished: the command that began it goes on with it")
    if not os.path.lexists(path / ROOT):
        if any((path / name / "c").is_dir() for name in os.listdir(path)):
            raise IncompleteDatasetError(f"{path} has no {ROOT}: it was not finished, or its root is lost")
        raise ArgumentError(f"there must be a dataset at the path given, got another folder at {path}")


def _root_bytes(source: Source) -> bytes:
    try:
        return read(source, ROOT, canonical.MAX_BYTES)
    except MissingFileError as err:
        raise DamagedDatasetError(f"{source.name} must have a {ROOT}, found {err}", chunk=ROOT) from None


def _refuse_v2(source: Source, root: Root) -> None:
    for path in ("", *(f"{name}/" for name in root.arrays)):
        for name in _V2_NAMES:
            try:
                source.size(f"{path}{name}")
            except MissingFileError:
                continue
            raise RefusedError(f"{source.name} must be of Zarr format 3, got {path}{name} of format 2 in it: refused")


def _check_range(start: int, stop: int, rows: int, what: str) -> None:
    if not 0 <= start <= stop <= rows:
        raise ArgumentError(f"{what} must be from 0 to {rows}, got {start} to {stop}")
