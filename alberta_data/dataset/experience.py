"""A dataset of an environment as a learner reads it: features and targets of a mode, or transitions.

What is stored is what the environment gave; this makes from it, block by block, what a learner asks for. It stands
where a dataset stands: `learn(experience(dataset, mode="next_state"), …)`, `learn_from_trajectory(learner, …)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from alberta_data.blocks import Block
from alberta_data.dataset.opened import Dataset
from alberta_data.environments.features import (
    episodes_before,
    learning_block,
    needs_next,
    transition_block,
    with_next_observations,
)
from alberta_data.environments.parameters import KIND, EnvironmentStream, PredictionMode
from alberta_data.errors import ArgumentError


class Form(NamedTuple):
    """What a block's array will be: its shape, steps first."""

    shape: tuple[int, ...]


class Experience:
    """A dataset of an environment, replayed; see `experience`.

    Attributes:
        mode: what a step asks for.
        include_action: whether the action follows the observation in the features.
    """

    def __init__(self, dataset: Dataset, mode: str | None = None, include_action: bool | None = None):
        collected = EnvironmentStream.from_spec(dataset.spec)
        names = [str(each) for each in PredictionMode]
        if mode is not None and mode not in names:
            raise ArgumentError(f"mode must be one of {', '.join(names)}, got {mode!r:.80}")
        self._dataset = dataset
        self.mode = PredictionMode(mode or collected.mode)
        self.include_action = collected.include_action_in_features if include_action is None else include_action
        self._usual = (collected.mode, collected.include_action_in_features)

    @property
    def replayed(self) -> dict[str, Any] | None:
        """In what this replay is not the one that the spec says, for a receipt; None where it is."""
        if (self.mode, self.include_action) == self._usual:
            return None
        return {"mode": str(self.mode), "include_action": self.include_action}

    @property
    def id(self) -> str:
        """Of the dataset."""
        return self._dataset.id

    @property
    def path(self) -> Path:
        """Of the dataset."""
        return self._dataset.path

    @property
    def spec(self) -> Mapping[str, Any]:
        """Of the dataset."""
        return self._dataset.spec

    @property
    def steps(self) -> int:
        """Of the dataset."""
        return self._dataset.steps

    def __len__(self) -> int:
        return self.steps

    @property
    def arrays(self) -> dict[str, Form]:
        """The arrays that its blocks can have."""
        width = self._dataset["observations"].shape[1]
        features = width + (self._dataset["actions"].shape[1] if self.include_action else 0)
        targets = width if self.mode == PredictionMode.NEXT_STATE else 1
        wide, flat = Form((self.steps, features)), Form((self.steps,))
        pairs = {"observations": wide, "targets": Form((self.steps, targets))}
        return {**pairs, "next_observations": wide, "rewards": flat, "terminated": flat}

    @property
    def target_columns(self) -> tuple[str, ...] | None:
        """Names of the target's columns: those of the observation for `next_state`, else `reward`."""
        return self._dataset["observations"].columns if self.mode == PredictionMode.NEXT_STATE else ("reward",)

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        names: Iterable[str] | None = None,
        *,
        block_steps: int | None = None,
    ) -> Iterator[Block]:
        """Yield checked blocks as a learner reads them.

        Args:
            start: first step.
            stop: the step after the last one; by default the end.
            names: `next_observations` among them asks for transitions; else pairs of features and targets.
            block_steps: where blocks end.

        Raises:
            DamagedDatasetError: in place of a damaged block.
        """
        stop = self.steps if stop is None else stop
        td = names is not None and "next_observations" in set(names)
        blocks = self._dataset.blocks(start, stop, block_steps=block_steps)
        if needs_next(self.mode, td):
            blocks = self._with_next(blocks, start, stop)
        for block in blocks:
            if td:
                yield transition_block(block, self.include_action)
            else:
                yield learning_block(block, self.mode, self.include_action)

    def _with_next(self, blocks: Iterator[Block], start: int, stop: int) -> Iterator[Block]:
        dataset = self._dataset
        flags = dataset.blocks(0, start, ["terminated", "truncated"]) if start else iter(())
        after = dataset["observations"][stop] if stop < self.steps else None
        finals = dataset["final_observations"]
        episode = episodes_before(block.arrays for block in flags)
        return with_next_observations(blocks, lambda first, last: finals[first:last], episode, after)


def experience(dataset: Dataset, *, mode: str | None = None, include_action: bool | None = None) -> Any:
    """Return a dataset as a learner reads it: of an environment, an `Experience`; any other one itself.

    Args:
        dataset: opened.
        mode: `reward`, `next_state` or `value`; by default the spec's.
        include_action: whether the action follows the observation; by default the spec's.

    Raises:
        ArgumentError: no such mode, or a mode asked of a dataset that has its targets.
    """
    if dataset.spec["kind"] == KIND:
        return Experience(dataset, mode, include_action)
    for name, value in (("mode", mode), ("include_action", include_action)):
        if value is not None:
            raise ArgumentError(f"{name} must go with a dataset of an environment, got {value} for one with targets")
    return dataset
