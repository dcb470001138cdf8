"""An unfinished dataset, opened again: what its journal vouches for, read back and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.store import disk
from alberta_data.store.chunks import damaged, read_chunk
from alberta_data.store.destination import remove_tree
from alberta_data.store.journal import JOURNAL, Line, encode, entries
from alberta_data.store.layout import ArrayLayout
from alberta_data.store.metadata import ROOT, FileRecord
from alberta_data.store.plain import SUFFIX
from alberta_data.store.rows import RowWriter
from alberta_data.store.sources import FolderSource


@dataclass
class Progress:
    """What is on disk for sure.

    Attributes:
        header: the journal's first entry.
        end: the first step that is not.
        state: the state before that step, as JSON.
        leaves: array → digests of its whole leaves.
        files: path → record of the chunk files that the root will hold a digest of.
        rows: array of unknown length → rows and their CRC-32C.
        journal_size: the bytes of the journal's whole lines.
    """

    header: Mapping[str, Any]
    end: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    leaves: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    journal_size: int = 0

    def add(self, line: Line) -> None:
        """Go on to the end of a line."""
        self.end, self.state, self.rows = line.end, line.state, line.rows
        for name, leaves in line.leaves.items():
            self.leaves.setdefault(name, []).extend(leaves)
        self.files.update(line.files)

    @classmethod
    def read(cls, folder: Path) -> Progress | None:
        """Return what a folder's journal says, or None where it has no whole header."""
        progress = None
        try:
            for entry, offset in entries(folder / JOURNAL):
                if progress is None:
                    progress = cls(entry, state=entry["state"])
                else:
                    progress.add(Line.from_json(entry))
                progress.journal_size = offset
        except FileNotFoundError:
            return None
        return progress


def write_header(folder: Path, header: Mapping[str, Any]) -> Progress:
    """Begin a journal, in place of one that is there, and wait until it is on the disk."""
    data = encode(header)
    writing = folder / f".{JOURNAL}.writing"
    disk.unlink(writing)
    fd = disk.create(writing)
    try:
        disk.write_all(fd, data, 0)
        disk.sync(fd)
    finally:
        disk.close(fd)
    disk.rename(writing, folder / JOURNAL)
    disk.sync_folder(folder)
    return Progress(header, state=header["state"], journal_size=len(data))


def prepare_folders(folder: Path, layouts: Mapping[str, ArrayLayout], progress: Progress) -> None:
    """Leave in the arrays' folders the chunk files that the journal vouches for and nothing else.

    Where it vouches for none, what was written before is removed, of arrays under other names too.
    """
    for entry in list(folder.iterdir()) if progress.end == 0 else ():
        if (entry / "c").is_dir() or (entry / ROOT).is_file() or entry.name.endswith(SUFFIX):
            remove_tree(entry)
    for layout in layouts.values():
        top = folder / layout.path
        for path in (top, top / "c"):
            if not path.is_dir():
                disk.make_folder(path)
        kept = {folder / layout.chunk_key(index) for index in range(-(-progress.end // layout.chunk_rows))}
        for path in [p for p in (top / "c").rglob("*") if not p.is_dir() and p not in kept]:
            disk.unlink(path)
        disk.sync_folder(top)
    disk.sync_folder(folder)


def writer_at(folder: Path, layout: ArrayLayout, progress: Progress) -> RowWriter:
    """Return the writer of an array's rows, standing at the journal's end.

    Rows from the start of the open leaf or chunk on are read back; a chunk that was open is written again beside the
    one that is there, which stays until the new one takes its name.

    Raises:
        DamagedDatasetError: what is on disk is not what the journal vouches for.
    """
    end, leaves = progress.end, progress.leaves.setdefault(layout.path, [])
    if end == layout.rows:
        return RowWriter(folder, layout, row=end, written_from=end)
    open_chunk = end - end % layout.chunk_rows
    first = min(open_chunk, end - end % layout.leaf_rows)
    first -= first % layout.leaf_rows
    writer = RowWriter(folder, layout, row=first, written_from=open_chunk)
    for index in range(first // layout.chunk_rows, -(-end // layout.chunk_rows)):
        rows = _rows_of_chunk(folder, layout, index, progress)
        at = index * layout.chunk_rows
        part = rows[max(first - at, 0) * layout.row_bytes : (min(end, at + layout.chunk_rows) - at) * layout.row_bytes]
        list(writer.feed(part))
    again, known = writer.new_leaves, leaves[first // layout.leaf_rows :]
    if again != known:
        at = next((n for n, (a, b) in enumerate(zip(again, known, strict=False)) if a != b), 0)
        key = layout.chunk_key((first + at * layout.leaf_rows) // layout.chunk_rows)
        raise damaged(layout.path, key, "expected the leaves in the journal, found others")
    writer.new_leaves = []
    return writer


def stored_rows(folder: Path, layout: ArrayLayout, progress: Progress, start: int, stop: int) -> np.ndarray:
    """Return rows `start` to `stop` of an array, which the journal vouches for.

    Raises:
        DamagedDatasetError: a chunk is not what the journal vouches for.
    """
    parts = []
    for index in range(start // layout.chunk_rows, -(-stop // layout.chunk_rows)):
        first = index * layout.chunk_rows
        data = _rows_of_chunk(folder, layout, index, progress)
        parts.append(data[max(start - first, 0) * layout.row_bytes : (stop - first) * layout.row_bytes])
    data = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return data.view(layout.stored_dtype).reshape(-1, *layout.shape[1:])


def _rows_of_chunk(folder: Path, layout: ArrayLayout, index: int, progress: Progress) -> np.ndarray:
    key = layout.chunk_key(index)
    record = progress.files.get(key, FileRecord(layout.most_file_bytes))
    source = FolderSource(folder)
    try:
        return read_chunk(source, layout, index, record)
    finally:
        source.close()
