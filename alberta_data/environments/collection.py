"""Parameters and a seed → blocks of what the environment gave.

Stored per step: `observations` (s, flattened, in their own dtype), `actions`, `rewards`, `terminated`, `truncated`,
`episode_start`, and `targets` where the mode has one column; per episode one row of `final_observations` (the true last
s'), the episode that the end cuts off included.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.environments.collector import Collected, Collector
from alberta_data.environments.features import next_rows, target_rows
from alberta_data.environments.making import make_environment
from alberta_data.environments.parameters import EnvironmentStream, PredictionMode
from alberta_data.keys import check_seed

__all__ = ["ArrayForm", "Collected", "Collection", "Collector", "collect_blocks"]

_BLOCK_BYTES = 2**25


class ArrayForm(NamedTuple):
    """The form of a stored array: dtype, columns (None where it has one number a step and no second axis)."""

    dtype: np.dtype
    columns: tuple[str, ...] | None


class Collection:
    """Parameters and a seed, opened: the environment is made and its spaces are known, no step is taken.

    Args:
        parameters: what to collect.
        seed: 0 … 4294967295.
        allow_import: modules that may be imported for the environment's id.

    Raises:
        ArgumentError: the environment, a space or the policy is refused.
        UnavailableError: something is not installed, or the policy is only recorded.
    """

    def __init__(self, parameters: EnvironmentStream, seed: int = 0, allow_import: Names[str] = ()):
        self.parameters, self.seed, self._allowed = parameters, check_seed(seed), tuple(allow_import)
        opened = self._make()
        self._opened: Collector | None = opened
        self._observation, self._action = opened.observation, opened.action
        self.initial_state: dict[str, np.ndarray] = opened.state()
        """The state before step 0."""

    def _make(self) -> Collector:
        p = self.parameters
        env = make_environment(p, self._allowed)
        return Collector(env, p.policy, self.seed, p.flatten, p.action_scale, own=True)

    def collector(self) -> Collector:
        """Return a collector that stands before the first step, with an environment of its own."""
        opened, self._opened = self._opened, None
        return opened or self._make()

    @property
    def feature_dim(self) -> int:
        """Number of features of a step, by the parameters' defaults."""
        return self._observation.width + self.parameters.include_action_in_features * self._action.width

    @property
    def target_dim(self) -> int:
        """Number of targets of a step, in the parameters' mode."""
        return self._observation.width if self.parameters.mode == PredictionMode.NEXT_STATE else 1

    @property
    def arrays(self) -> dict[str, ArrayForm]:
        """The stored arrays, name → form; all are indexed by step but `final_observations`."""
        observation = ArrayForm(self._observation.dtype, self._observation.columns)
        flag = ArrayForm(np.dtype(bool), None)
        forms = {
            "observations": observation,
            "actions": ArrayForm(self._action.dtype, self._action.columns),
            "rewards": ArrayForm(np.dtype(np.float64), None),
            "terminated": flag,
            "truncated": flag,
            "episode_start": flag,
        }
        if self.target_dim == 1:
            mode = self.parameters.mode
            name = f"next_{self._observation.columns[0]}" if mode == PredictionMode.NEXT_STATE else str(mode)
            forms["targets"] = ArrayForm(np.dtype(np.float32), (name[:64],))
        return {**forms, "final_observations": observation}

    @property
    def row_bytes(self) -> int:
        """How many bytes a step takes in memory."""
        forms = self.arrays
        del forms["final_observations"]
        return sum(form.dtype.itemsize * len(form.columns or "1") for form in forms.values())

    def block_steps(self, wanted: int = 2**14) -> int:
        """Return how many steps a block has: `wanted`, or fewer where rows are wide (images)."""
        return max(1, min(wanted, _BLOCK_BYTES // self.row_bytes))

    def blocks(self, steps: int, block_steps: int = 2**14, collector: Collector | None = None) -> Iterator[Collected]:
        """Yield the steps from where the collector stands up to `steps`; blocks end at every multiple of 2^17.

        Args:
            steps: length of the collection.
            block_steps: steps of a block, an upper limit; the rows don't depend on it.
            collector: one that stands further on (`resuming.resumed`); default one before step 0.

        Raises:
            UnavailableError: the environment or the policy failed.
        """
        collector = collector or self.collector()
        size = self.block_steps(block_steps)
        try:
            while collector.step < steps:
                boundary = (collector.step // CHECKPOINT_STEPS + 1) * CHECKPOINT_STEPS
                got = collector.collect(min(size, steps - collector.step, boundary - collector.step))
                yield self._finished(got, collector.following, last=collector.step == steps)
        finally:
            collector.env.close()

    def _finished(self, got: Collected, after: np.ndarray | None, last: bool) -> Collected:
        """Return a block with its targets, and with the row of the episode that the end cuts off."""
        rows, finals = dict(got.block.arrays), got.final_observations
        if "targets" in self.arrays:
            following = None
            if self.parameters.mode == PredictionMode.NEXT_STATE:
                following = next_rows(got.block, rows["observations"][-1] if after is None else after, finals)
            rows["targets"] = target_rows(self.parameters.mode, rows["rewards"], following)
        if last and after is not None:
            finals = np.concatenate([finals, after[None]])
        return Collected(Block(got.block.start, rows), finals, got.state)


def collect_blocks(
    parameters: EnvironmentStream, seed: int, steps: int, block_steps: int = 2**14
) -> Iterator[Collected]:
    """Yield `steps` steps of an environment, block by block; memory does not grow with them."""
    yield from Collection(parameters, seed).blocks(steps, block_steps)
