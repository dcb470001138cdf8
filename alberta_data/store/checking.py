"""Every byte of a dataset checked, and everything that is wrong with it listed.

Each byte is read once, hashed once and, where a CRC follows it, summed once, while it is near the processor.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store.chunks import check_size, read_chunk, read_exactly, read_file
from alberta_data.store.codecs import crc32c
from alberta_data.store.layout import ArrayLayout
from alberta_data.store.leaves import check_tail, leaf_damage
from alberta_data.store.metadata import ROOT, FileRecord, Root
from alberta_data.store.sources import Source

_PIECE = 2**20
# Units of work given out at once: many more than workers, few in memory.
_WAITING = 16


@dataclass
class Report:
    """What a check found.

    Attributes:
        damages: an error for each file or chunk that is not what was written.
        strays: files that the root does not name.
        notes: files of the kind that file managers leave, whose names begin with a dot.
        checked: bytes that were read.
    """

    damages: list[DamagedDatasetError] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: int = 0

    @property
    def ok(self) -> bool:
        """Whether the dataset is as it was written, with nothing beside it but notes."""
        return not self.damages and not self.strays


def verify(
    source: Source,
    root: Root,
    *,
    quick: bool = False,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 2,
) -> Report:
    """Check every file that the root names, and list those that it does not.

    Args:
        source: where the files are.
        root: of the dataset.
        quick: sizes alone.
        progress: called now and then, from this thread, with the bytes checked and the bytes of all.
        workers: threads.

    Raises:
        StorageError: the disk or the network fails.
    """
    report = Report()
    _list_strays(source, root, report)
    units = _sizes(source, root) if quick else _units(source, root)
    lock, told = threading.Lock(), set[tuple[str | None, str | None]]()

    def work(unit: Iterator[_Found]) -> None:
        for found in unit:
            with lock:
                if isinstance(found, int):
                    report.checked += found
                elif (found.array, found.chunk) not in told:
                    told.add((found.array, found.chunk))
                    report.damages.append(found)

    with ThreadPoolExecutor(workers, "alberta-data verify") as pool:
        waiting = {pool.submit(work, unit) for unit in islice(units, _WAITING)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            waiting |= {pool.submit(work, unit) for unit in islice(units, len(done))}
            if progress is not None:
                progress(report.checked, root.size)
    report.damages.sort(key=lambda damage: (damage.array or "", len(damage.chunk or ""), damage.chunk or ""))
    return report


# A unit of work yields the bytes that it has read and the damage that it has met.
_Found = int | DamagedDatasetError


def _list_strays(source: Source, root: Root, report: Report) -> None:
    for path in source.list():
        if path != ROOT and path not in root.files:
            dotted = any(part.startswith(".") for part in path.split("/"))
            (report.notes if dotted else report.strays).append(path)
    report.strays.sort()
    report.notes.sort()


def _sizes(source: Source, root: Root) -> Iterator[Iterator[_Found]]:
    def one(path: str, record: FileRecord) -> Iterator[_Found]:
        try:
            check_size(source, _array_of(root, path), path, record.size)
        except DamagedDatasetError as err:
            yield err

    for path, record in root.files.items():
        yield one(path, record)


def _array_of(root: Root, path: str) -> str | None:
    """Return the array that a file belongs to: the longest path above it that is one."""
    above = path
    while "/" in above:
        above = above.rpartition("/")[0]
        if above in root.layouts:
            return above
    return None


def _units(source: Source, root: Root) -> Iterator[Iterator[_Found]]:
    """Yield the units of work: one for each document, and for each run of chunks that ends where a leaf does."""
    for path in root.documents:
        array = path if path in root.layouts else None
        yield _file(source, array, f"{path}/{ROOT}", root.files[f"{path}/{ROOT}"])
    for path, layout in root.layouts.items():
        for chunks in _runs(layout):
            if path not in root.arrays:
                yield _checkpoint(source, root, layout, chunks)
            else:
                yield _Run(source, root, layout).check(chunks)


def _runs(layout: ArrayLayout) -> Iterator[range]:
    """Yield the shortest runs of chunks that hold whole leaves: one chunk, a leaf's chunks, or all there are."""
    count = max(layout.leaf_rows // layout.chunk_rows, 1)
    if count * layout.chunk_rows % layout.leaf_rows:
        count = layout.chunks
    for first in range(0, layout.chunks, count):
        yield range(first, min(first + count, layout.chunks))


def _file(source: Source, array: str | None, key: str, record: FileRecord) -> Iterator[_Found]:
    try:
        read_file(source, array, key, record)
    except DamagedDatasetError as err:
        yield err
    yield record.size


def _checkpoint(source: Source, root: Root, layout: ArrayLayout, chunks: range) -> Iterator[_Found]:
    for index in chunks:
        record = root.files[layout.chunk_key(index)]
        try:
            read_chunk(source, layout, index, record)
        except DamagedDatasetError as err:
            yield err
        yield record.size


class _Run:
    """The check of a run of chunks of one array, leaf by leaf."""

    def __init__(self, source: Source, root: Root, layout: ArrayLayout):
        self._source, self._layout, self._files = source, layout, root.files
        self._leaves = root.arrays[layout.path].leaves
        self._hasher = hashlib.sha256()
        # A leaf of which some rows could not be read has no digest; the damage is told already.
        self._broken = False

    def check(self, chunks: range) -> Iterator[_Found]:
        """Yield the bytes read and the damage met."""
        for index in chunks:
            record = self._files[self._layout.chunk_key(index)]
            try:
                yield from self._bare(index) if self._layout.codec == "none" else self._packed(index, record)
            except DamagedDatasetError as err:
                self._skip(index)
                yield err
            yield record.size

    def _rows(self, index: int) -> tuple[int, int]:
        first = index * self._layout.chunk_rows
        return first, min(first + self._layout.chunk_rows, self._layout.rows)

    def _bare(self, index: int) -> Iterator[_Found]:
        layout, key = self._layout, self._layout.chunk_key(index)
        first, stop = self._rows(index)
        check_size(self._source, layout.path, key, layout.most_file_bytes)
        buffer = np.empty(_PIECE, np.uint8)
        at, end, crc = 0, (stop - first) * layout.row_bytes, 0
        leaves: list[_Found] = []
        while at < end:
            leaf_end = self._leaf_end(first + at // layout.row_bytes)
            piece = buffer[: min(_PIECE, end - at, (leaf_end - first) * layout.row_bytes - at)]
            read_exactly(self._source, layout.path, key, piece, at)
            self._hasher.update(piece)
            crc, at = crc32c(piece, crc), at + len(piece)
            if at == (leaf_end - first) * layout.row_bytes:
                leaves.extend(self._close_leaf(leaf_end))
        # A chunk that is damaged by itself is told as that, not as the leaf that reaches into it.
        check_tail(self._source, layout, index, end, crc)
        yield from leaves

    def _packed(self, index: int, record: FileRecord) -> Iterator[_Found]:
        layout, (first, stop) = self._layout, self._rows(index)
        rows = read_chunk(self._source, layout, index, record)
        row = first
        while row < stop:
            end = min(self._leaf_end(row), stop)
            self._hasher.update(rows[(row - first) * layout.row_bytes : (end - first) * layout.row_bytes])
            row = end
            if row == self._leaf_end(row - 1):
                yield from self._close_leaf(row)

    def _leaf_end(self, row: int) -> int:
        return min(row - row % self._layout.leaf_rows + self._layout.leaf_rows, self._layout.rows)

    def _close_leaf(self, end: int) -> Iterator[_Found]:
        index, layout = (end - 1) // self._layout.leaf_rows, self._layout
        found, broken = self._hasher.hexdigest(), self._broken
        self._hasher, self._broken = hashlib.sha256(), False
        if not broken and found != self._leaves[index]:
            yield leaf_damage(layout, index * layout.leaf_rows, self._leaves[index], found)

    def _skip(self, index: int) -> None:
        """Go on behind a chunk that could not be read: the leaf that reaches over its end has no digest."""
        _, stop = self._rows(index)
        self._hasher = hashlib.sha256()
        self._broken = stop % self._layout.leaf_rows != 0 and stop != self._layout.rows
