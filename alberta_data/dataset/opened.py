"""A finished dataset, opened: its arrays, its blocks, its history, and the questions one asks of it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from alberta_data.blocks import Block
from alberta_data.dataset.naming import find
from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.store.checking import Report
from alberta_data.store.reader import Store, open_store
from alberta_data.store.sources import Source, is_address

if TYPE_CHECKING:
    from alberta_data.dataset.replaying import Replay
    from alberta_data.dataset.reproducing import Reproduction

Progress = Callable[[int, int], None]


class StoredArray:
    """An array of a dataset; slices of it are read and checked when they are asked for.

    Attributes:
        name: its name in the dataset.
        shape: rows first.
        dtype: NumPy's.
        columns: names of the last axis' entries, or None.
    """

    def __init__(self, store: Store, name: str):
        self._store, self.name = store, name
        layout, record = store.root.layouts[name], store.root.arrays[name]
        self.shape: tuple[int, ...] = tuple(layout.shape)
        self.dtype = np.dtype(record.dtype)
        self.columns: tuple[str, ...] | None = None if record.columns is None else tuple(record.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Return rows: an index, a slice, or a tuple whose first entry is one of these.

        Raises:
            IndexError: a row that the array does not have.
            DamagedDatasetError: what is read is not what was written.
        """
        rows, rest = (index[0], index[1:]) if isinstance(index, tuple) else (index, ())
        if rows is Ellipsis:
            rows = slice(None)
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step < 0:
                return self[:][(rows, *rest)]
            found = self._store.read(self.name, start, max(start, stop))[::step]
            return found[(slice(None), *rest)] if rest else found
        row = operator.index(rows)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"row must be from 0 to {len(self) - 1}, got {rows}")
        found = self._store.read(self.name, row, row + 1)[0]
        return found[rest] if rest else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def __repr__(self) -> str:
        return f"<{self.name} {self.shape} {self.dtype}>"


class Dataset:
    """A finished dataset, opened with `open_dataset`; nothing is handed on that was not checked against its id.

    Attributes:
        store: the checked reader below it.
    """

    def __init__(self, store: Store):
        self.store = store

    @property
    def path(self) -> Path | str:
        """Where it lies; of an address, the address."""
        name = self.store.name
        return name if is_address(name) else Path(name)

    @property
    def id(self) -> str:
        """64 hex digits that follow from spec and numbers alone."""
        return self.store.root.id

    @property
    def spec(self) -> Mapping[str, Any]:
        """All that determines its numbers."""
        return self.store.root.spec

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.store.root.steps

    def __len__(self) -> int:
        return self.steps

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Versions, processor and settings it was made with."""
        return self.store.root.made_with

    @property
    def about(self) -> Mapping[str, Any]:
        """Title, licence and so on; outside the id."""
        return self.store.root.about

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return self.store.root.size + len(self.store.root_bytes)

    @property
    def arrays(self) -> dict[str, StoredArray]:
        """Its arrays, name → array."""
        return {name: StoredArray(self.store, name) for name in self.store.root.arrays}

    def __getitem__(self, name: str) -> StoredArray:
        """Return an array by its name.

        Raises:
            ArgumentError: there is none of that name.
        """
        if name not in self.store.root.arrays:
            raise ArgumentError(f"array must be one of {', '.join(self.store.root.arrays)}, got {name!r:.80}")
        return StoredArray(self.store, name)

    @property
    def observations(self) -> StoredArray:
        """What was observed, `(steps, …)`."""
        return self["observations"]

    @property
    def targets(self) -> StoredArray:
        """What is to be predicted, `(steps, K)`."""
        return self["targets"]

    @property
    def target_columns(self) -> tuple[str, ...] | None:
        """Names of the target's columns, where they have any."""
        return self["targets"].columns if "targets" in self.store.root.arrays else None

    @property
    def stream(self) -> Any:
        """The stream or environment that its spec describes.

        Raises:
            UnavailableError: it cannot be made here.
        """
        from alberta_data.dataset.recording import made_from_spec

        return made_from_spec(self.spec)

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        names: Iterable[str] | None = None,
        *,
        block_steps: int | None = None,
    ) -> Iterator[Block]:
        """Return an iterator over checked blocks, read ahead on a thread.

        A block's arrays are read-only views, good for as long as they are held; memory stays flat for whoever lets go.

        Args:
            start: first step.
            stop: the step after the last one; by default the end.
            names: arrays; by default all with a row a step.
            block_steps: where blocks end; by default at multiples of 65,536.

        Raises:
            ArgumentError: an argument is out of its range.
            DamagedDatasetError: from the iterator, in place of a damaged block.
        """
        return self.store.blocks(start, stop, names, block_steps=block_steps)

    def __iter__(self) -> Iterator[Block]:
        """Yield all blocks in order; see `blocks`."""
        return self.blocks()

    def replay(self, mode: str | None = None, include_action: bool | None = None) -> Dataset | Replay:
        """Return what a learner reads: this dataset itself, or an environment's features and targets.

        Args:
            mode: of an environment's dataset: `reward`, `next_state`, `value`; by default the spec's.
            include_action: of an environment's dataset: whether the action follows the observation in the features.

        Raises:
            ArgumentError: an argument that goes with environments, and this is none.
        """
        from alberta_data.dataset.replaying import Replay

        if self.spec["kind"] != "environment" and mode is None and include_action is None:
            return self
        return Replay(self, mode, include_action)

    def verify(self, *, quick: bool = False, progress: Progress | None = None, workers: int = 2) -> Report:
        """Check every byte of every file; see `Store.verify`.

        Args:
            quick: names and sizes alone.
            progress: called with bytes checked and all bytes.
            workers: threads.
        """
        return self.store.verify(quick=quick, progress=progress, workers=workers)

    def reproduce(self, *, allow_import: tuple[str, ...] = (), progress: Progress | None = None) -> Reproduction:
        """Make it again from its spec and compare bit by bit; see `dataset.reproduce`."""
        from alberta_data.dataset.reproducing import reproduce

        return reproduce(self, allow_import=allow_import, progress=progress)

    def recipe(self) -> str:
        """Return the few lines that make it again, canonical JSON: what `reproduce` takes from a file."""
        from alberta_data.dataset.recipes import recipe_text

        return recipe_text(self.store.root)

    def extend(self, steps: int, path: Path | str | None = None, **options: Any) -> Dataset:
        """Make a longer dataset that begins with this one; see `dataset.extend`."""
        from alberta_data.dataset.extending import extend

        return extend(self, steps, path, **options)

    def hidden(self, start: int = 0, stop: int | None = None) -> dict[str, np.ndarray]:
        """Return the stream's hidden state (true weights, scales) at each of a range of steps, made again.

        Args:
            start: first step.
            stop: the step after the last one; by default the end.

        Returns:
            name → array `(stop − start, …)`: what the targets of these steps were made with.

        Raises:
            ArgumentError: steps that the dataset does not have.
            UnavailableError: no stream of ours.
        """
        from alberta_data.dataset.child import pinned
        from alberta_data.dataset.reproducing import hidden_rows

        stop = self.steps if stop is None else stop
        if not 0 <= start < stop <= self.steps:
            raise ArgumentError(f"steps must be from 0 to {self.steps}, got {start} to {stop}")
        first, state = self.store.checkpoint(start)
        return pinned(hidden_rows, dict(self.spec), first, state, start, stop)  # type: ignore[no-any-return]

    def change_points(self) -> np.ndarray | None:
        """Return the steps at which the stream's weights jump, int64; None where they drift at every step.

        Raises:
            UnavailableError: no stream of ours.
        """
        stream = self.stream
        if not hasattr(stream, "change_points"):
            raise UnavailableError(f"change points are known of streams, this dataset is of kind {self.spec['kind']!r}")
        found = stream.change_points(self.steps)
        return None if found is None else np.arange(found.start, found.stop, found.step, dtype=np.int64)

    def close(self) -> None:
        """Let go of its files."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Dataset {self.store.name} {self.spec['stream']!r} {self.steps} steps id {self.id[:8]}…>"


def open_dataset(place: Path | str | Source, *, data_dir: Path | str | None = None) -> Dataset:
    """Open a finished dataset for checked reading.

    Args:
        place: its path (a folder or a packed file), its name in the data folder, 8 or more first digits of its id,
            an address, or a source.
        data_dir: the data folder; by default `ALBERTA_DATA_DIR`, else `./datasets`.

    Raises:
        ArgumentError: nothing is named so.
        IncompleteDatasetError: it is not finished.
        DamagedDatasetError: its root is not what was written.
        RefusedError: unsafe, or of an unknown format.
    """
    named = isinstance(place, (str, Path)) and not is_address(place)
    return Dataset(open_store(find(place, data_dir) if named else place))  # type: ignore[arg-type]
