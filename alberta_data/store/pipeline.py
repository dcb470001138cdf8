"""The writer's two threads: one hashes and writes, the other syncs and keeps the journal.

The caller goes on computing while both work. Queues are short, so memory stays flat; an error in a thread is raised in
the caller at its next call.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError
from alberta_data.store import disk
from alberta_data.store.journal import JournalFile, Line
from alberta_data.store.metadata import CHECKPOINT_STEPS
from alberta_data.store.plain import PlainRows
from alberta_data.store.rows import FinishedChunk, RowWriter, as_bytes, chunk_folders

T = TypeVar("T")
_BLOCKS_WAITING = 2
_CHUNKS_WAITING = 64


class Stage(Generic[T]):
    """A thread that works off a short queue, in order.

    Args:
        name: of the thread.
        work: called with all items that wait, at least one.
        depth: items that may wait before `put` does.
        most: items given to `work` at once.
    """

    def __init__(self, name: str, work: Callable[[list[T]], None], *, depth: int, most: int = 1):
        self._work, self._depth, self._most = work, depth, most
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Queue an item, waiting for room; raise the thread's error if it has met one."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or len(self._items) < self._depth)
            self._raise()
            self._items.append(item)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until everything queued is done; raise the thread's error if it has met one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._closing)
                if not self._items:
                    return
                batch = [self._items.popleft() for _ in range(min(self._most, len(self._items)))]
                self._changed.notify_all()
            try:
                self._work(batch)
            except BaseException as err:
                with self._changed:
                    self._error = err
                    self._items.clear()
                    self._changed.notify_all()
                return


@dataclass(frozen=True)
class _Rows:
    """What the caller appends."""

    block: Block
    state: Mapping[str, Any]
    extra: Mapping[str, np.ndarray]


class Pipeline:
    """Takes blocks, in order, and makes them durable.

    Args:
        folder: the unfinished dataset.
        step: the first step that will come.
        writers: array → its rows' writer, standing at `step`.
        plain: array of unknown length → the file that keeps its rows.
        journal: to which lines are added.
        durable: called with every line that the journal has taken.
    """

    def __init__(
        self,
        folder: Path,
        step: int,
        writers: Mapping[str, RowWriter],
        plain: Mapping[str, PlainRows],
        journal: JournalFile,
        durable: Callable[[Line], None],
    ):
        self._folder, self._step, self._writers, self._plain = folder, step, writers, plain
        self._journal, self._tell = journal, durable
        self._on_disk = dict.fromkeys(writers, step)
        self._pending: deque[Line] = deque()
        self._new_files: dict[str, Any] = {}
        self._syncing: Stage[FinishedChunk | Line] = Stage(
            "alberta-data sync", self._sync, depth=_CHUNKS_WAITING, most=_CHUNKS_WAITING
        )
        self._writing: Stage[_Rows] = Stage("alberta-data write", self._write, depth=_BLOCKS_WAITING)

    def put(self, block: Block, state: Mapping[str, Any], extra: Mapping[str, np.ndarray]) -> None:
        """Queue a block with the state after it, as JSON."""
        self._writing.put(_Rows(block, state, extra))

    def close(self) -> None:
        """Wait until all that was queued is written, and what can be vouched for is in the journal."""
        try:
            self._writing.close()
        finally:
            try:
                self._syncing.close()
            finally:
                for writer in self._writers.values():
                    writer.close()
                for file in self._plain.values():
                    file.close()
                self._journal.close()

    def _write(self, batch: list[_Rows]) -> None:
        for item in batch:
            if item.block.start != self._step:
                raise ArgumentError(f"a block must start at step {self._step}, got {item.block.start}")
            line = Line(item.block.stop)
            for name, writer in self._writers.items():
                for chunk in writer.feed(as_bytes(writer.layout, item.block.arrays[name])):
                    self._syncing.put(chunk)
                line.leaves[name], writer.new_leaves = writer.new_leaves, []
            for name, file in self._plain.items():
                if name in item.extra:
                    file.feed(item.extra[name])
                line.rows[name] = file.position
            line.state = dict(item.state)
            self._syncing.put(line)
            self._step = item.block.stop

    def _sync(self, batch: list[FinishedChunk | Line]) -> None:
        folders: dict[Path, None] = {}
        for item in batch:
            if isinstance(item, Line):
                self._queue(item)
                continue
            item.publish(self._folder)
            folders.update(dict.fromkeys(chunk_folders(self._folder, item.layout, item.index)))
            self._on_disk[item.layout.path] = item.end
            if item.record.sha256 is not None:
                self._new_files[item.layout.chunk_key(item.index)] = item.record
        for folder in folders:
            disk.sync_folder(folder)
        self._commit()

    def _queue(self, line: Line) -> None:
        """Let a line wait for its rows; lines that can only come together, in one chunk, become one."""
        last = self._pending[-1] if self._pending else None
        if last is not None and last.end % CHECKPOINT_STEPS and self._needs(last.end) == self._needs(line.end):
            last.absorb(line)
        else:
            self._pending.append(line)

    def _needs(self, step: int) -> tuple[int, ...]:
        return tuple(-(-step // writer.layout.chunk_rows) for writer in self._writers.values())

    def _commit(self) -> None:
        durable = min(self._on_disk.values())
        lines = []
        while self._pending and self._pending[0].end <= durable:
            lines.append(self._pending.popleft())
        if not lines:
            return
        lines[0].files.update(self._new_files)
        self._new_files = {}
        for file in self._plain.values():
            file.sync()
        self._journal.add(lines)
        for line in lines:
            self._tell(line)
