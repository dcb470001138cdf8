"""Learners side by side: those of one kind and one target share a compiled loop, up to eight in its lanes.

A group takes blocks of any length and cuts them into tiles. It hands back every step's metrics and keeps the states;
a member that leaves the finite numbers is marked with the step, the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from alberta_data.learners import LinearLearner
from alberta_data.replay.loop import Advanced, Kind, Numbers, Tile, loop
from alberta_data.replay.rows import Rows

LANES = 8
TILE = 1 << 16
"""Steps that one call of a compiled loop takes at most: a block as it is read, whose metrics then lie together."""
TILE_BYTES = 32 << 20
"""Bytes of observations that it takes at most."""
SMALL_TILES = (1 << 8, 1 << 11, 1 << 14)
"""The other sizes compiled for, so that a short block needn't pay for a long one."""


class Tracking(NamedTuple):
    """Intervals, in steps, at which a group records its step-sizes and its normaliser; 0 for never."""

    step_sizes: int = 0
    scales: int = 0


NOT_TRACKED = Tracking()


class Group:
    """Learners of one kind, advanced together.

    Args:
        members: their places in the caller's order.
        learners: one a member, of the same `parts`.
        states: one a member.
        columns: the target column of each.
        gamma: the discount of TD on stored transitions; None for plain targets.
        tracking: what to record.
    """

    def __init__(
        self,
        members: Sequence[int],
        learners: Sequence[LinearLearner],
        states: Sequence[Any],
        columns: Sequence[int],
        gamma: float | None = None,
        tracking: Tracking = NOT_TRACKED,
    ):
        import jax

        self.members = list(members)
        self.learners = list(learners)
        self.stopped: dict[int, int] = {}
        self.histories: list[list[np.ndarray]] = []
        self.taken = 0
        self._columns = list(columns)
        self._gamma = gamma
        self._tracking = tracking
        packed = [learner.pack(state) for learner, state in zip(learners, states, strict=True)]
        if len(packed) == 1:
            self.packed = packed[0]
        else:
            packed += [packed[-1]] * (_width(len(packed)) - len(packed))
            self.packed = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], -1), *packed)

    @property
    def width(self) -> int:
        """Lanes, those that only fill up included; 0 for a learner alone."""
        return 0 if len(self.members) == 1 else _width(len(self.members))

    @property
    def lost(self) -> bool:
        """Whether no member is left."""
        return len(self.stopped) == len(self.members)

    def states(self) -> list[Any]:
        """Return the members' states as they stand, NumPy arrays in them."""
        import jax

        packed = jax.tree.map(np.asarray, self.packed)
        if not self.width:
            return [self.learners[0].unpack(packed)]
        lanes = [jax.tree.map(lambda leaf, lane=lane: leaf[..., lane], packed) for lane in range(len(self.members))]
        return [learner.unpack(lane) for learner, lane in zip(self.learners, lanes, strict=True)]

    def advance(self, rows: Rows) -> np.ndarray:
        """Learn from rows and return the metrics of their steps.

        Args:
            rows: consecutive steps, following those of the call before.

        Returns:
            `(n, columns, members)` float32. From the step at which a member was lost, its metrics mean nothing.
        """
        parts = []
        for first, steps, size in tiles(rows):
            parts.append(self._advance(rows, first, steps, size))
        metrics = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return metrics[..., None] if not self.width else metrics[..., : len(self.members)]

    def _tile(self, rows: Rows, first: int, steps: int, size: int) -> Tile:
        window = slice(first, first + steps)
        columns = self._columns + [self._columns[-1]] * (self.width - len(self._columns))
        targets = rows.targets[window, columns[0] if len(set(columns)) == 1 else columns]
        if self._gamma is None:
            return Tile(padded(rows.observations[window], size), padded(targets, size))
        return Tile(
            padded(rows.observations[window], size),
            padded(targets, size),
            padded(rows.next_observations[window], size),
            padded(rows.terminated[window], size),
        )

    def _advance(self, rows: Rows, first: int, steps: int, size: int) -> np.ndarray:
        before = self.packed
        advanced = self._run(before, self._tile(rows, first, steps, size), steps)
        self.packed = advanced.state
        finite = np.atleast_1d(np.asarray(advanced.finite))
        for lane, member in enumerate(self.members):
            if not finite[lane] and member not in self.stopped:
                self.stopped[member] = rows.start + first + self._lost_at(before, rows, first, steps, lane)
        self._keep(advanced, steps)
        self.taken += steps
        return np.asarray(advanced.metrics)[:steps]

    def _run(self, packed: Any, tile: Tile, steps: int) -> Advanced:
        parts = self.learners[0].parts
        (sizes, scales), gamma = self._tracking, self._gamma
        room = len(tile.observations)
        kind = Kind(*parts, gamma is not None, _rows(sizes, room), _rows(scales, room) if parts[1] is not None else 0)
        numbers = Numbers(
            np.int32(steps),
            np.int32(0),
            np.float32(gamma or 0.0),
            _when(sizes, self.taken),
            _when(scales, self.taken),
        )
        return loop(kind)(packed, tile, numbers)

    def _lost_at(self, state: Any, rows: Rows, first: int, steps: int, lane: int) -> int:
        """Return the step, from row `first` on, after which a lane was not finite; `state` is the one before it.

        A rule keeps it so from there on, so halving finds it; the state goes along, so no step is taken twice but
        those of the last halves.
        """
        low, high = 0, steps
        while high - low > 1:
            count = (high - low) // 2
            tile = self._tile(rows, first + low, count, size_for(rows, count))
            advanced = self._run(state, tile, count)
            if np.atleast_1d(np.asarray(advanced.finite))[lane]:
                low, state = low + count, advanced.state
            else:
                high = low + count
        return high - 1

    def joined_histories(self) -> list[np.ndarray]:
        """Return the histories so far, one array a quantity, lanes last."""
        return [np.concatenate(parts) for parts in zip(*self.histories, strict=True)]

    def _keep(self, advanced: Advanced, steps: int) -> None:
        if not advanced.histories:
            return
        first, last = self.taken, self.taken + steps
        kept = []
        scales = 2 if self._tracking.scales and self.learners[0].normalizer is not None else 0
        for place, history in enumerate(advanced.histories):
            interval = self._tracking.scales if place >= len(advanced.histories) - scales else self._tracking.step_sizes
            recordings = -(-last // interval) - -(-first // interval)
            kept.append(np.array(history[:recordings]))
        self.histories.append(kept)


def tiles(rows: Rows) -> Iterator[tuple[int, int, int]]:
    """Yield first row, steps and size of the tiles of some rows. There are four sizes: few programs are compiled."""
    largest = _sizes(rows)[-1]
    for first in range(0, len(rows), largest):
        steps = min(largest, len(rows) - first)
        yield first, steps, size_for(rows, steps)


def size_for(rows: Rows, steps: int) -> int:
    """Return the size of the smallest tile that holds so many steps of some rows."""
    return next(size for size in _sizes(rows) if size >= steps)


def _sizes(rows: Rows) -> list[int]:
    fitting = TILE_BYTES // (4 * rows.observations.shape[1])
    largest = max(SMALL_TILES[0], min(TILE, 1 << max(fitting.bit_length() - 1, 0)))
    return [size for size in SMALL_TILES if size < largest] + [largest]


def padded(rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows as a tile of `size`: themselves where they fill it, else followed by zeros."""
    if len(rows) == size:
        return rows
    tile = np.zeros((size, *rows.shape[1:]), rows.dtype)
    tile[: len(rows)] = rows
    return tile


def _width(members: int) -> int:
    """Return the lanes for so many members: a power of two that fills a register.

    Not two: jax 0.10 takes three times as long for two lanes as for four.
    """
    return max(4, 1 << (members - 1).bit_length())


def _rows(interval: int, room: int) -> int:
    """Return how many rows of a history a tile of `room` steps needs, rounded up so that few programs are compiled."""
    return 1 << (room // interval + 1).bit_length() if interval else 0


def _when(interval: int, taken: int) -> np.ndarray:
    return np.array([interval or 1, taken % interval if interval else 0], np.int32)
