"""One pass over the data: read, learn, tally, side by side; a checkpoint now and then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import NonFiniteError
from alberta_data.replay import Curves, Fold, GroupMetrics
from alberta_data.replay.rows import TRANSITIONS
from alberta_data.replay.trajectory import PAIRS
from alberta_data.runs.folder import RunFolder
from alberta_data.runs.request import Request
from alberta_data.runs.tally import FullMetrics, Tally, below

SAVE_WEIGHTS = 1 << 30
"""Weights learned, times steps, between two checkpoints of a run: some seconds of learning."""
_ROWS_BYTES = 16 << 20
"""Most bytes of rows in a block: several are in memory at once."""
_GROUPS_BEHIND = 4
"""Groups whose metrics of a block may wait to be tallied, while they learn from the next one."""
_BLOCKS_BEHIND = 2
"""Blocks of which every step's metrics may wait to be written."""


class Pass:
    """Some of a run's learners over all of its steps.

    Args:
        request: the run.
        number: which of its passes.
        states: one a member of this pass, to go on from; None to begin.
        folder: where checkpoints go; None for none.
        full: takes every step's metrics; None for none.
    """

    def __init__(
        self,
        request: Request,
        number: int,
        features: int,
        states: list[Any] | None,
        folder: RunFolder | None,
        full: FullMetrics | None,
    ):
        self._request = request
        self._name = f"checkpoint-{number}"
        self._folder = folder
        self._full = full
        self.fold = Fold(
            [request.learners[place] for place in request.passes[number]],
            features,
            columns=request.columns,
            gamma=request.gamma,
            states=states,
            tracking=request.tracking,
        )
        self.tallies = {tuple(places): Tally(places, request.edges, request.curve_edges) for places in self.fold.groups}
        self._tallying: dict[tuple[int, ...], Future[None] | None] = dict.fromkeys(self.tallies)
        self._waiting: deque[Future[None]] = deque()

    def run(self, dataset: Any, progress: Callable[[int], None]) -> None:
        """Learn, from the last checkpoint on.

        Args:
            dataset: `blocks(start, stop, names, block_steps=…)`.
            progress: called with the steps taken.

        Raises:
            DamagedDatasetError: the dataset is not what its id says.
        """
        request = self._request
        position = self._resume()
        saved = position
        weights = len(self.fold.members) * (self.fold.feature_dim + 1)
        every = max(request.block_steps, SAVE_WEIGHTS // weights)
        with self.fold, ThreadPoolExecutor(1) as worker:
            try:
                for block in self._blocks(dataset, position):
                    if not self._take(block, worker):
                        return
                    progress(block.stop - request.start)
                    if self._folder is not None and block.stop - saved >= every:
                        saved = block.stop
                        self._save()
            finally:
                self._drain()
        if self._folder is not None and len(request.passes) > 1:
            self._save()

    def _blocks(self, dataset: Any, position: int) -> Iterator[Block]:
        stop = self._request.start + self._request.steps
        if position == stop:
            return iter(())
        names = PAIRS if self._request.gamma is None else TRANSITIONS
        row_bytes = 4 * sum(int(np.prod(dataset.arrays[name].shape[1:])) for name in names)
        fitting = 1 << max((_ROWS_BYTES // row_bytes).bit_length() - 1, 0)
        steps = min(self._request.block_steps, fitting)
        return dataset.blocks(position, stop, names, block_steps=steps)  # type: ignore[no-any-return]

    def _take(self, block: Block, worker: ThreadPoolExecutor) -> bool:
        """Learn from a block and have its metrics tallied; say whether a member is left."""

        def then(found: GroupMetrics) -> None:
            # One more thread tallies, as long as it keeps up: two that tally at once wait for each other, and leave a
            # core idle. A group's own steps stay in order.
            group = tuple(found.members)
            if (before := self._tallying[group]) is not None:
                before.result()
            waiting = sum(other is not None and not other.done() for other in self._tallying.values())
            if waiting < _GROUPS_BEHIND:
                self._tallying[group] = worker.submit(self._tally, found)
            else:
                self._tally(found)

        try:
            found = self.fold.advance(block, then)
        except NonFiniteError:
            return False
        if self._full is not None:
            self._waiting.append(worker.submit(self._full.add, block.start, len(block), found, self.fold.stopped))
        while len(self._waiting) > _BLOCKS_BEHIND:
            self._waiting.popleft().result()
        return True

    def _tally(self, found: GroupMetrics) -> None:
        self.tallies[tuple(found.members)].add(found.metrics)

    def _drain(self) -> None:
        for future in (*self._tallying.values(), *self._waiting):
            if future is not None:
                future.result()
        self._waiting.clear()

    def _save(self) -> None:
        self._drain()
        assert self._folder is not None
        arrays = {f"fold/{name}": array for name, array in self.fold.checkpoint().items()}
        for number, tally in enumerate(self.tallies.values()):
            arrays |= {f"tally{number}/{name}": array for name, array in tally.checkpoint().items()}
        if self._full is not None:
            arrays |= {f"full/{name}": array for name, array in self._full.checkpoint().items()}
        self._folder.save(self._name, arrays)

    def _resume(self) -> int:
        arrays = None if self._folder is None else self._folder.load(self._name)
        if arrays is None:
            return self._request.start
        self.fold.restore(below(arrays, "fold/"))
        for number, tally in enumerate(self.tallies.values()):
            tally.restore(below(arrays, f"tally{number}/"))
        if self._full is not None:
            self._full.restore(below(arrays, "full/"))
        return self._request.start if self.fold.position is None else self.fold.position

    def digests(self) -> list[str | None]:
        """Return the digest of every member's metrics; None of those that were lost."""
        found = {member: digest for tally in self.tallies.values() for member, digest in tally.digests().items()}
        return [None if place in self.fold.stopped else found[place] for place in range(len(self.fold.members))]

    def curves(self, columns: int, which: str = "windows") -> Curves:
        """Return the windows of all members, `(windows, members, columns)`.

        NaN from the window on in which a member was lost, and in the columns that it does not have.

        Args:
            columns: of the member that has most.
            which: see `Tally.curves`.
        """
        others = self._request.curve_edges
        edges = self._request.edges if which == "windows" or others is None else others
        shape = (len(edges) - 1, len(self.fold.members), columns)
        mean = np.full(shape, np.nan)
        low, high = np.full((2, *shape), np.nan, np.float32)
        for tally in self.tallies.values():
            found = tally.curves(which)
            if found is None:
                continue
            for table, part in ((mean, found.mean), (low, found.min), (high, found.max)):
                table[: len(part), tally.members, : part.shape[1]] = np.moveaxis(part, -1, 1)
        for member, step in self.fold.stopped.items():
            lost = int(np.searchsorted(edges, step - self._request.start, "right")) - 1
            for table in (mean, low, high):
                table[lost:, member] = np.nan
        return Curves(edges + self._request.start, mean, low, high)
