"""Plain Zarr v3 groups: what a run leaves beside its receipt. They are no datasets: no spec, no id, nothing to replay.

The arrays lie as those of a dataset do (`layout`), so every Zarr reader reads them, CRC and all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.store import canonical, disk
from alberta_data.store.codecs import crc32c, crc_bytes
from alberta_data.store.layout import ArrayLayout, default_chunk_rows, row_bytes
from alberta_data.store.metadata import ROOT


class Table:
    """An array of a group, written chunk by chunk.

    Args:
        folder: the group's, which exists.
        layout: of the array; its codec must be `none`.
    """

    def __init__(self, folder: Path, layout: ArrayLayout):
        self._folder = folder
        self.layout = layout

    def begin(self) -> None:
        """Write the array's document."""
        _make_folders(self._folder, Path(self.layout.path))
        write_file(self._folder / self.layout.path / ROOT, canonical.dumps(self.layout.document()))

    def put(self, index: int, rows: np.ndarray) -> None:
        """Write a chunk, in place of what may be there of an interrupted run.

        Args:
            index: which one.
            rows: all its rows; fewer than a chunk's only at the array's end.
        """
        data = np.ascontiguousarray(rows, self.layout.stored_dtype).view(np.uint8).reshape(-1)
        padding = self.layout.padding(self.layout.chunk_rows - len(rows))
        key = Path(self.layout.chunk_key(index))
        _make_folders(self._folder, key.parent)
        body = np.concatenate([data, padding]) if len(padding) else data
        write_file(self._folder / key, body, crc_bytes(crc32c(body)))


def new_layout(name: str, dtype: str, shape: Sequence[int], dimension_names: Sequence[str]) -> ArrayLayout:
    """Return where an array of a group lies: chunks of at most 2^18 rows and 32 MiB, as in a dataset."""
    rows = default_chunk_rows(max(shape[0], 1), row_bytes(dtype, tuple(shape[1:])))
    return ArrayLayout(name, dtype, tuple(shape), rows, "none", tuple(dimension_names))


def begin_group(folder: Path, attributes: Mapping[str, Any]) -> None:
    """Make a group's folder and document; one that is there stays."""
    _make_folders(folder.parent, Path(folder.name))
    document = {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}
    write_file(folder / ROOT, canonical.dumps(document))


def write_group(folder: Path, arrays: Mapping[str, tuple[np.ndarray, Sequence[str]]], **attributes: Any) -> None:
    """Write a group of arrays.

    Args:
        folder: of the group.
        arrays: name → array with at least one row, and its dimension names.
        attributes: the group's.
    """
    begin_group(folder, attributes)
    for name, (array, dimension_names) in arrays.items():
        table = Table(folder, new_layout(name, array.dtype.name, array.shape, dimension_names))
        table.begin()
        size = table.layout.chunk_rows
        for index in range(table.layout.chunks):
            table.put(index, array[index * size : (index + 1) * size])


def write_file(path: Path, *parts: np.ndarray | bytes) -> None:
    """Write a whole file, synced, in place of one of that name; nobody ever sees a part of it."""
    beside = path.with_name(f".{path.name}.writing")
    disk.unlink(beside)
    fd = disk.create(beside)
    try:
        offset = 0
        for part in parts:
            disk.write_all(fd, part, offset)
            offset += len(part)
        disk.sync(fd)
    finally:
        disk.close(fd)
    disk.rename(beside, path)
    disk.sync_folder(path.parent)


def _make_folders(base: Path, below: Path) -> None:
    """Make the folders of `below`, one after the other; those that are there stay."""
    for part in [*reversed(below.parents), below]:
        folder = base / part
        if not folder.is_dir():
            disk.make_folder(folder)
            disk.sync_folder(folder.parent)
