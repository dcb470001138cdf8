"""Blocks of a dataset, in order, checked and read ahead on a thread of their own.

For the codec `none` a block is the very memory that the file was read into and the digest computed over: no copy.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from alberta_data.blocks import Block
from alberta_data.store.leaves import LeafReader

_ALIGNMENT = 64
# Steps that are read ahead where blocks are shorter, and the bytes that these may take.
_AHEAD, _AHEAD_BYTES = 65_536, 8 * 2**20


class _Pool:
    """Aligned buffers of one size, used again once nobody holds an array in them any more."""

    def __init__(self, size: int):
        self._size = size
        self._free: deque[memoryview] = deque()

    def take(self) -> np.ndarray:
        """Return a buffer as uint8; every view of it keeps it from being given out again."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = aligned(self._size).data
        # An array of its own over the memory: the views made of it refer to it, and the memory comes back with it.
        buffer = np.frombuffer(memory, np.uint8)
        weakref.finalize(buffer, self._free.append, memory).atexit = False
        return buffer


def aligned(size: int) -> np.ndarray:
    """Return `size` bytes as uint8 that begin at a multiple of 64."""
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % _ALIGNMENT
    return raw[skip : skip + size]


class _Window(NamedTuple):
    """Some whole leaves of an array: first row, the row after the last, and their bytes."""

    start: int
    stop: int
    bytes: np.ndarray


class _Rows:
    """The rows of one array, asked for in ascending pieces."""

    def __init__(self, reader: LeafReader, block_steps: int, stop: int):
        self._reader, self._stop = reader, stop
        layout = reader.layout
        self._rows = layout.leaf_rows * max(block_steps // layout.leaf_rows, 1)
        self._pool = _Pool(self._rows * layout.row_bytes)
        self._window: _Window | None = None

    def piece(self, start: int, stop: int) -> np.ndarray:
        """Return rows `start` to `stop`: a view where they lie in one window, else a copy."""
        layout = self._reader.layout
        window = self._holding(start)
        if stop <= window.stop:
            data = window.bytes[(start - window.start) * layout.row_bytes : (stop - window.start) * layout.row_bytes]
            return self._shaped(data)
        copy = aligned((stop - start) * layout.row_bytes)
        row = start
        while row < stop:
            window = self._holding(row)
            end = min(stop, window.stop)
            part = window.bytes[(row - window.start) * layout.row_bytes : (end - window.start) * layout.row_bytes]
            copy[(row - start) * layout.row_bytes : (end - start) * layout.row_bytes] = part
            row = end
        return self._shaped(copy)

    def _holding(self, row: int) -> _Window:
        if self._window is None or row >= self._window.stop:
            self._window = None
            end = row - row % self._rows + self._rows
            start, stop = self._reader.around(row, min(end, self._stop))
            data = self._pool.take()[: (stop - start) * self._reader.layout.row_bytes]
            self._reader.read(start, stop, data)
            self._window = _Window(start, stop, data)
        return self._window

    def _shaped(self, data: np.ndarray) -> np.ndarray:
        layout = self._reader.layout
        rows = data.view(layout.stored_dtype).reshape(-1, *layout.shape[1:])
        rows.flags.writeable = False
        return rows


_Item = Block | BaseException | None


class _Producer:
    """What the thread works on; it knows nothing of the iterator, so that one left lying ends the thread."""

    def __init__(self, rows: Mapping[str, _Rows], start: int, stop: int, block_steps: int, depth: int):
        self._rows, self._start, self._stop, self._steps = rows, start, stop, block_steps
        self.ready: queue.Queue[_Item] = queue.Queue(depth)
        self.closed = threading.Event()

    def run(self) -> None:
        try:
            for item in self._items():
                self._hand_over(item)
        except BaseException as err:
            self._hand_over(err)

    def _items(self) -> Iterator[_Item]:
        step = self._start
        while step < self._stop and not self.closed.is_set():
            stop = min(step - step % self._steps + self._steps, self._stop)
            yield Block(step, {name: rows.piece(step, stop) for name, rows in self._rows.items()})
            step = stop
        yield None

    def _hand_over(self, item: _Item) -> None:
        while not self.closed.is_set():
            try:
                self.ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return


class BlockReader:
    """Iterates over the blocks of a dataset; see `Store.blocks`. Closing it ends its thread."""

    def __init__(self, readers: Mapping[str, LeafReader], start: int, stop: int, block_steps: int, *, ahead: int):
        rows = {name: _Rows(reader, block_steps, stop) for name, reader in readers.items()}
        steps = min(_AHEAD, _AHEAD_BYTES // max(1, sum(reader.layout.row_bytes for reader in readers.values())))
        depth = max(ahead, min(-(-steps // block_steps), 64))
        self._producer = _Producer(rows, start, stop, block_steps, depth)
        self._thread = threading.Thread(target=self._producer.run, name="alberta-data read", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Block]:
        """Return the iterator itself."""
        return self

    def __next__(self) -> Block:
        """Return the next block; its arrays are the caller's for as long as they are held."""
        if self._producer.closed.is_set():
            raise StopIteration
        item = self._producer.ready.get()
        if isinstance(item, Block):
            return item
        self.close()
        if item is None:
            raise StopIteration
        raise item

    def close(self) -> None:
        """End the thread; blocks handed out stay as they are."""
        self._producer.closed.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """Return the iterator."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_producer"):
            self._producer.closed.set()
