"""The writer's two threads: one hashes and writes, the other syncs and keeps the journal.

The caller goes on computing while both work. Queues are short, so memory stays flat; an error in a thread is raised in
the caller at its next call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.errors import ArgumentError
from alberta_data.store import disk
from alberta_data.store.journal import JournalFile, Line
from alberta_data.store.plain import PlainRows
from alberta_data.store.rows import FinishedChunk, RowWriter, as_bytes, chunk_folders
from alberta_data.store.stage import Stage

_BLOCKS_WAITING = 1
_CHUNKS_WAITING = 64


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
        self._new_folders: set[Path] = set()
        self._syncing: Stage[FinishedChunk | Line] = Stage(
            "alberta-data sync",
            self._sync,
            depth=_CHUNKS_WAITING,
            most=_CHUNKS_WAITING,
            settle=self._commit,
            drop=_let_go,
        )
        self._writing: Stage[_Rows] = Stage("alberta-data write", self._write, depth=_BLOCKS_WAITING)

    @property
    def ended(self) -> bool:
        """Whether both threads are done."""
        return self._writing.ended and self._syncing.ended

    def put(self, block: Block, state: Mapping[str, Any], extra: Mapping[str, np.ndarray]) -> None:
        """Queue a block with the state after it, as JSON."""
        self._writing.put(_Rows(block, state, extra))

    def close(self) -> None:
        """Wait until all that was queued is written, and what can be vouched for is in the journal."""
        failed: Exception | None = None
        for stage in (self._writing, self._syncing):
            try:
                stage.close()
            except Exception as err:
                failed = failed or err
        for writer in self._writers.values():
            writer.close()
        for file in self._plain.values():
            file.close()
        self._journal.close()
        if failed is not None:
            raise failed

    def _write(self, item: _Rows) -> None:
        if item.block.start != self._step:
            raise ArgumentError(f"a block must start at step {self._step}, got {item.block.start}")
        line = Line(item.block.stop)
        for name, writer in self._writers.items():
            for chunk in writer.feed(as_bytes(writer.layout, item.block.arrays[name])):
                try:
                    self._syncing.put(chunk)
                except BaseException:
                    _let_go(chunk)
                    raise
            line.leaves[name], writer.new_leaves = writer.new_leaves, []
        for name, file in self._plain.items():
            if name in item.extra:
                file.feed(item.extra[name])
            line.rows[name] = file.position
        line.state = dict(item.state)
        self._syncing.put(line)
        self._step = item.block.stop

    def _sync(self, item: FinishedChunk | Line) -> None:
        if isinstance(item, Line):
            self._queue(item)
            return
        item.publish(self._folder)
        self._new_folders.update(chunk_folders(self._folder, item.layout, item.index))
        self._on_disk[item.layout.path] = item.end
        if item.record.sha256 is not None:
            self._new_files[item.layout.chunk_key(item.index)] = item.record

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
        """Sync the folders of new chunks, and give the journal the lines whose rows are then on the disk."""
        for folder in sorted(self._new_folders):
            disk.sync_folder(folder)
        self._new_folders.clear()
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


def _let_go(item: FinishedChunk | Line) -> None:
    if isinstance(item, FinishedChunk):
        disk.close(item.fd)
