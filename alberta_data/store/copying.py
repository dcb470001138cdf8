"""What is done to finished datasets: rows taken over into a longer one, another description."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alberta_data.blocks import Block
from alberta_data.errors import DestinationError
from alberta_data.store import disk
from alberta_data.store.finishing import write_root
from alberta_data.store.metadata import CHECKPOINT_STEPS, Root
from alberta_data.store.reader import Store, open_store
from alberta_data.store.writer import Writer


def copy_rows(store: Store, writer: Writer) -> int:
    """Append the checked rows of a dataset to a writer, as many as it can go on from, and return the step reached.

    A writer that keeps checkpoints takes rows up to the dataset's last checkpoint, any other all rows; neither more
    than it needs. What the writer holds already is not copied again.

    Raises:
        ArgumentError: the arrays are not those that the writer was begun with.
        DamagedDatasetError: a row is not what was written.
    """
    step = writer.position.step
    keeps = bool(writer.checkpoint_paths)
    last = (store.root.steps - 1) // CHECKPOINT_STEPS * CHECKPOINT_STEPS if keeps else store.root.steps
    while step < min(last, writer.steps):
        stop = min(step - step % CHECKPOINT_STEPS + CHECKPOINT_STEPS, last, writer.steps)
        if keeps and stop % CHECKPOINT_STEPS:
            break
        arrays = {name: store.read(name, step, stop) for name in store.root.arrays if store.by_step(name)}
        writer.append(Block(step, arrays), store.checkpoint(stop)[1] if keeps else None)
        step = stop
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
