"""What is done to finished datasets: rows taken over into a longer one, another description."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.errors import DestinationError
from alberta_data.store import disk
from alberta_data.store.finishing import write_root
from alberta_data.store.journal import State
from alberta_data.store.metadata import Root
from alberta_data.store.reader import Store, open_store
from alberta_data.store.writer import Writer


def kept_blocks(store: Store, start: int, stop: int) -> Iterator[tuple[Block, State | None]]:
    """Yield the checked blocks of a dataset from `start` on that something longer can begin with.

    With checkpoints, these are whole blocks of 2^17 steps up to the last checkpoint, each with the state after it;
    without, all rows.

    Args:
        store: the dataset.
        start: first step; with checkpoints a multiple of 2^17, otherwise there is nothing to go on from.
        stop: a step that no block passes.

    Raises:
        DamagedDatasetError: a row or a checkpoint is not what was written.
    """
    last, _ = store.checkpoint(store.root.steps) if store.keeps_checkpoints else (store.root.steps, None)
    end = min(last, stop)
    if store.keeps_checkpoints:
        end -= end % CHECKPOINT_STEPS
    if start >= end or (store.keeps_checkpoints and start % CHECKPOINT_STEPS):
        return
    with store.blocks(start, end, block_steps=CHECKPOINT_STEPS) as blocks:
        for block in blocks:
            yield block, store.checkpoint(block.stop)[1] if store.keeps_checkpoints else None


def copy_rows(store: Store, writer: Writer) -> int:
    """Append to a writer as much of a dataset as `kept_blocks` gives, and return the step reached.

    What the writer holds already is not copied again.

    Raises:
        ArgumentError: the arrays are not those that the writer was begun with.
        DamagedDatasetError: a row is not what was written.
    """
    step = writer.position.step
    for block, state in kept_blocks(store, step, writer.steps):
        writer.append(block, state)
        step = block.stop
    return step


def annotate(path: Path | str, about: Mapping[str, Any], extensions: Mapping[str, Any] | None = None) -> Root:
    """Give a finished dataset another `about`, and other extensions where they are given; return the new root.

    The root is replaced in one step; the id stays.

    Raises:
        ArgumentError: the description cannot stand in a root.
        DestinationError: the dataset is being changed by another process.
        StorageError: the disk failed; the old description stands.
    """
    path = Path(path)
    with open_store(path) as store:
        root = store.root.with_about(dict(about), None if extensions is None else dict(extensions))
    if not path.is_dir():
        raise DestinationError(f"a dataset must be a folder to be described anew, got {path}: unpack it first")
    try:
        lock = disk.lock(path)
        if lock is None:
            raise DestinationError(f"{path} must not be in use, got another process at work on it")
        try:
            write_root(path, root)
        finally:
            os.close(lock)
    except OSError as err:
        raise disk.failure(err, path) from err
    return root
