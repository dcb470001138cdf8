"""An environment's dataset as a learner reads it: features and targets of any mode, made from what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError

if TYPE_CHECKING:
    from alberta_data.dataset.opened import Dataset

_RAW = ("observations", "actions", "rewards", "terminated", "truncated", "episode_start")
_PIECE = 2**20


class Form(NamedTuple):
    """Shape, dtype and column names of an array that a replay gives."""

    shape: tuple[int, ...]
    dtype: np.dtype
    columns: tuple[str, ...] | None = None


class Replay:
    """The view of an environment's dataset that a learner reads; the same questions as a dataset, other arrays.

    Args:
        dataset: of kind `environment`.
        mode: `reward`, `next_state` or `value`; by default the spec's.
        include_action: whether the action follows the observation; by default as the spec says.

    Raises:
        ArgumentError: an unknown mode, or a dataset of another kind.
    """

    def __init__(self, dataset: Dataset, mode: str | None = None, include_action: bool | None = None):
        from alberta_data.environments.parameters import PredictionMode

        if dataset.spec["kind"] != "environment":
            raise ArgumentError(f"mode is of an environment's dataset, this one is of kind {dataset.spec['kind']!r}")
        parameters = dataset.spec["parameters"]
        mode = parameters["mode"] if mode is None else mode
        if mode not in list(PredictionMode):
            raise ArgumentError(f"mode must be one of {', '.join(PredictionMode)}, got {mode!r}")
        self.dataset, self.mode = dataset, str(mode)
        self.include_action = parameters["include_action_in_features"] if include_action is None else include_action

    @property
    def replayed(self) -> dict[str, Any] | None:
        """In what this replay is not the one that the spec says, for a receipt; None where it is."""
        usual = self.dataset.spec["parameters"]
        if (self.mode, self.include_action) == (usual["mode"], usual["include_action_in_features"]):
            return None
        return {"mode": self.mode, "include_action": self.include_action}

    @property
    def id(self) -> str:
        """The dataset's id."""
        return self.dataset.id

    @property
    def spec(self) -> Mapping[str, Any]:
        """The dataset's spec."""
        return self.dataset.spec

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.dataset.steps

    @property
    def path(self) -> Path | str:
        """Where the dataset lies."""
        return self.dataset.path

    @property
    def store(self) -> Any:
        """The checked reader below it."""
        return self.dataset.store

    @property
    def feature_dim(self) -> int:
        """Number of features of a step."""
        raw = self.dataset.arrays
        return raw["observations"].shape[1] + (raw["actions"].shape[1] if self.include_action else 0)

    @property
    def target_columns(self) -> tuple[str, ...] | None:
        """Names of the target's columns."""
        if self.mode != "next_state":
            return (self.mode,)
        columns = self.dataset["observations"].columns
        return None if columns is None else tuple(f"next_{name}"[:64] for name in columns)

    @property
    def arrays(self) -> dict[str, Form]:
        """What it gives, name → form."""
        steps, single = self.steps, np.dtype(np.float32)
        width = self.dataset["observations"].shape[1] if self.mode == "next_state" else 1
        return {
            "observations": Form((steps, self.feature_dim), single),
            "targets": Form((steps, width), single, self.target_columns),
            "next_observations": Form((steps, self.feature_dim), single),
            "rewards": Form((steps,), single),
            "terminated": Form((steps,), np.dtype(bool)),
        }

    def replay(self) -> Replay:
        """Return itself: it is what a learner reads."""
        return self

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        names: Iterable[str] | None = None,
        *,
        block_steps: int | None = None,
    ) -> Iterator[Block]:
        """Return an iterator over blocks of features and targets, or of transitions.

        Args:
            start: first step.
            stop: the step after the last one; by default the end.
            names: `observations` and `targets` (default), or `observations`, `next_observations`, `rewards`,
                `terminated` for TD.
            block_steps: see `Dataset.blocks`.

        Raises:
            ArgumentError: an argument is out of its range.
            DamagedDatasetError: from the iterator, in place of a damaged block.
        """
        wanted = ("observations", "targets") if names is None else tuple(names)
        stop = self.steps if stop is None else stop
        if not set(wanted) <= set(self.arrays):
            raise ArgumentError(f"names must be of {', '.join(self.arrays)}, got {', '.join(wanted)}")
        return self._made(start, stop, wanted, "next_observations" in wanted, block_steps)

    def _made(
        self, start: int, stop: int, wanted: tuple[str, ...], td: bool, block_steps: int | None
    ) -> Iterator[Block]:
        from alberta_data.environments.features import learning_block, needs_next, transition_block

        raw: Iterator[Block] = self.dataset.store.blocks(start, stop, _RAW, block_steps=block_steps)
        if needs_next(self.mode, td):
            raw = self._with_next(raw, start, stop)
        for block in raw:
            made = transition_block(block, self.include_action) if td else learning_block(
                block, self.mode, self.include_action
            )  # fmt: skip
            yield Block(made.start, {name: made.arrays[name] for name in wanted})

    def _with_next(self, raw: Iterator[Block], start: int, stop: int) -> Iterator[Block]:
        from alberta_data.environments.features import episodes_before, with_next_observations

        store = self.dataset.store
        pieces = (
            {name: store.read(name, at, min(at + _PIECE, start)) for name in ("terminated", "truncated")}
            for at in range(0, start, _PIECE)
        )
        after = store.read("observations", stop, stop + 1)[0] if stop < self.steps else None
        finals = lambda a, b: store.read("final_observations", a, b)  # noqa: E731
        return with_next_observations(raw, finals, episodes_before(pieces), after)
