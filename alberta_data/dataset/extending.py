"""Makes a longer dataset that begins with one there is, without generating that part again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.dataset.child import pinned
from alberta_data.dataset.creating import destination, fill
from alberta_data.dataset.opened import Dataset, open_dataset
from alberta_data.dataset.recording import Part, State, Stored, StreamRecording, made_from_spec
from alberta_data.dataset.reproducing import changed_settings
from alberta_data.errors import ArgumentError, DamagedDatasetError, UnavailableError
from alberta_data.store.copying import kept_blocks
from alberta_data.store.reader import Store, open_store
from alberta_data.store.writer import Writer

Progress = Callable[[int, int], None]


def extend(
    place: Any,
    steps: int,
    path: Path | str | None = None,
    *,
    data_dir: Path | str | None = None,
    chunk_steps: int | None = None,
    codec: str | None = None,
    overwrite: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Make a dataset of the same stream and seed with more steps.

    The rows of the old one are verified while they are copied; up to 2^17 steps before its end are made again, since
    the state there is kept no closer, and compared with what is stored.

    Args:
        place: a dataset, or what `open_dataset` takes.
        steps: length of the new one, more than the old one's.
        path: where it goes; by default a name that says what is in it, in the data folder.
        data_dir: the data folder.
        chunk_steps: see `create_dataset`.
        codec: see `create_dataset`.
        overwrite: see `create_dataset`.
        force: see `create_dataset`.
        progress: called with steps done and all steps.

    Raises:
        ArgumentError: `steps` is not more than there are.
        UnavailableError: it was made with settings that can change a bit and differ from those here, or not by a
            stream of ours.
        DamagedDatasetError: the old dataset is not what was written.
    """
    dataset = place if isinstance(place, Dataset) else open_dataset(place)
    if not steps > dataset.steps:
        raise ArgumentError(f"steps must be more than the {dataset.steps} there are, got {steps}")
    if dataset.spec["kind"] != "stream":
        raise UnavailableError(f"only a stream's dataset can be extended, this one is of kind {dataset.spec['kind']!r}")
    options = {"chunk_steps": chunk_steps, "codec": codec, "overwrite": overwrite, "force": force}
    made = pinned(_extend, dataset.store.name, steps, path, data_dir, options, progress=progress)
    return open_dataset(made)


def _extend(
    old: str,
    steps: int,
    path: Path | None,
    data_dir: Path | None,
    options: dict[str, Any],
    progress: Progress | None = None,
) -> Path:
    with open_store(old) as store:
        spec = store.root.spec
        source = _Extended(store, made_from_spec(spec), spec["seed"], steps)
        changed = changed_settings(store.root.made_with, source.made_with)
        decisive = {name: changed[name] for name in source.decisive if name in changed}
        if decisive:
            told = ", ".join(f"{name} was {then!r}, is {now!r}" for name, (then, now) in decisive.items())
            raise UnavailableError(f"{old} was made with settings that can change a bit: {told}; generate it anew")
        where = destination(source.stream, source, path, data_dir)
        with Writer.begin(
            where,
            source.spec,
            source.made_with,
            source.declarations,
            checkpoint_state=dict(source.initial_state),
            decisive=source.decisive,
            **options,
        ) as writer:
            if not writer.already_there:
                fill(writer, source, progress)
                writer.finish(about=dict(store.root.about))
    return where


class _Extended(StreamRecording):
    """A stream's recording whose beginning is copied from a shorter dataset of it."""

    def __init__(self, store: Store, stream: Any, seed: int, steps: int):
        super().__init__(stream, seed, steps)
        self._store = store

    def parts(self, step: int, state: State, stored: Stored | None = None) -> Iterator[Part]:
        """Yield copied blocks up to the last kept state, then made ones."""
        store = self._store
        kept = store.checkpoint(0)[1]
        if any(not np.array_equal(kept[name], self.initial_state[name]) for name in self.initial_state):
            raise DamagedDatasetError(
                "the first checkpoint must follow from the seed, found another state", array="checkpoints"
            )
        for block, after in kept_blocks(store, step, self.steps):
            assert after is not None
            step, state = block.stop, after
            yield Part(block, after, {})
        for part in super().parts(step, state):
            self._check(part.block)
            yield part

    def _check(self, block: Block) -> None:
        """Check what is made again of the old dataset against what is stored."""
        stop = min(block.stop, self._store.root.steps)
        if block.start >= stop:
            return
        for name, rows in block.arrays.items():
            stored = self._store.read(name, block.start, stop)
            if not np.array_equal(stored, rows[: stop - block.start], equal_nan=True):
                raise DamagedDatasetError(
                    f"{name} must be what its spec makes here, found other numbers in steps {block.start} to {stop}: "
                    "`reproduce` tells how far apart they are",
                    array=name,
                )
