"""Stored rows → what a learner reads, in NumPy, bit for bit what the iterators yield.

Features are the observation, followed by the action when asked. Targets of a step (s, a, r, s'): `reward` r;
`next_state` s'; `value` r + γ·V(s'), and just r when terminated; a stored dataset knows no V, so there V is 0 and the
learner's own value is put in by the TD loop (`transitions`).

The s' of a step is the observation of the step after, except at an episode's end and at the end of the dataset, where
it is a row of `final_observations`. Nothing here reads more than a block, or knows gymnasium.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.environments.parameters import PredictionMode
from alberta_data.errors import ArgumentError

Rows = Mapping[str, np.ndarray]
Finals = Callable[[int, int], np.ndarray]
"""`final_observations[start:stop]`, however it is stored."""


def feature_rows(observations: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
    """Return features, float32 `(n, D)`: the observations `(n, W)`, followed by the actions `(n, A)` if given."""
    parts = [observations] if actions is None else [observations, actions]
    rows = np.empty((len(observations), sum(part.shape[1] for part in parts)), np.float32)
    start = 0
    for part in parts:
        rows[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return rows


def target_rows(
    mode: str, rewards: np.ndarray, next_observations: np.ndarray | None = None, *, column: int | None = None
) -> np.ndarray:
    """Return targets, float32 `(n, K)`; V is 0.

    Args:
        mode: a `PredictionMode`.
        rewards: `(n,)`.
        next_observations: `(n, W)`, for `next_state`.
        column: one column of the targets alone, so that K is 1.

    Raises:
        ArgumentError: there is no such column.
    """
    if mode == PredictionMode.NEXT_STATE:
        assert next_observations is not None  # a caller's bug, not a person's
        targets = next_observations
    else:
        targets = rewards[:, None]
    if column is not None:
        if not 0 <= column < targets.shape[1]:
            raise ArgumentError(f"target must be a column from 0 to {targets.shape[1] - 1}, got {column}")
        targets = targets[:, column : column + 1]
    return targets.astype(np.float32)


def next_rows(block: Block, after: np.ndarray | None, finals: np.ndarray) -> np.ndarray:
    """Return the true s' of each step of a block, `(n, W)` in the observations' dtype.

    Args:
        block: with `observations`, `terminated`, `truncated`.
        after: the observation that follows the block, `(W,)`; None at the end of the dataset.
        finals: the rows of `final_observations` for the episodes that end in the block, and, where `after` is None
            and the last step ends no episode, one more.
    """
    observations = block.observations
    rows = np.empty_like(observations)
    rows[:-1] = observations[1:]
    ends = np.flatnonzero(block.arrays["terminated"] | block.arrays["truncated"])
    if after is not None:
        rows[-1] = after
    elif not len(ends) or ends[-1] != len(block) - 1:
        ends = np.append(ends, len(block) - 1)
    rows[ends] = finals
    return rows


def with_next_observations(
    blocks: Iterable[Block], finals: Finals, episode: int = 0, after: np.ndarray | None = None
) -> Iterator[Block]:
    """Yield each block with `next_observations` added; one block is held back, nothing more.

    Args:
        blocks: consecutive blocks of stored rows.
        finals: rows of `final_observations`.
        episode: how many episodes end before the first block (`episodes_before`).
        after: the observation stored behind the last block; None where that ends the dataset.
    """
    held: Block | None = None
    for block in blocks:
        if held is not None:
            row, episode = _completed(held, block.observations[0], finals, episode)
            yield row
        held = block
    if held is not None:
        yield _completed(held, after, finals, episode)[0]


def _completed(block: Block, after: np.ndarray | None, finals: Finals, episode: int) -> tuple[Block, int]:
    ended = block.arrays["terminated"] | block.arrays["truncated"]
    stop = episode + int(ended.sum())
    wanted = finals(episode, stop + (after is None and not ended[-1]))
    rows = next_rows(block, after, wanted)
    return Block(block.start, {**block.arrays, "next_observations": rows}), stop


def episodes_before(flags: Iterable[Rows]) -> int:
    """Return how many episodes end in rows of `terminated` and `truncated`, given piece by piece."""
    return sum(int((rows["terminated"] | rows["truncated"]).sum()) for rows in flags)


def needs_next(mode: str, td: bool = False) -> bool:
    """Say whether a replay in this mode needs `with_next_observations`; otherwise blocks go in as they are stored."""
    return td or mode == PredictionMode.NEXT_STATE


def learning_block(block: Block, mode: str, include_action: bool, *, column: int | None = None) -> Block:
    """Return the block a learner reads: `observations (n, D)` and `targets (n, K)`, float32.

    Args:
        block: stored rows, with `next_observations` where `needs_next(mode)`.
        mode: a `PredictionMode`.
        include_action: whether the action follows the observation.
        column: one column of the targets alone.
    """
    rows = block.arrays
    features = feature_rows(rows["observations"], rows["actions"] if include_action else None)
    targets = target_rows(mode, rows["rewards"], rows.get("next_observations"), column=column)
    return Block(block.start, {"observations": features, "targets": targets})


def transition_block(block: Block, include_action: bool) -> Block:
    """Return the block TD(0) reads: `observations`, `next_observations (n, D)`, `rewards (n,)` float32, `terminated`.

    The features of s' are followed by the action of this step when actions are features, as `TDStream` has it. A
    truncated step has the episode's true last observation there, and bootstraps from it.
    """
    rows = block.arrays
    actions = rows["actions"] if include_action else None
    arrays: dict[str, Any] = {
        "observations": feature_rows(rows["observations"], actions),
        "next_observations": feature_rows(rows["next_observations"], actions),
        "rewards": rows["rewards"].astype(np.float32),
        "terminated": rows["terminated"].copy(),
    }
    return Block(block.start, arrays)
