"""What a learner reads of a block: float32 rows, C order, whatever the block held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError

TRANSITIONS = ("observations", "next_observations", "rewards", "terminated")


@dataclass(frozen=True)
class Rows:
    """Consecutive steps as the compiled loops read them.

    Attributes:
        start: index of the first step.
        observations: `(n, D)` float32.
        targets: `(n, K)` float32; for TD the rewards, `(n, 1)`.
        next_observations: `(n, D)` float32 for TD, else None.
        terminated: `(n,)` bool for TD, else None.
    """

    start: int
    observations: np.ndarray
    targets: np.ndarray
    next_observations: Any = None
    terminated: Any = None

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.observations)


def rows_of(block: Block, *, td: bool = False) -> Rows:
    """Return what learners read of a block.

    Args:
        block: with `observations` and `targets`; for TD with `next_observations`, `rewards`, `terminated`.
        td: learn values from transitions.

    Raises:
        ArgumentError: an array is missing, or its shape is not that of features or targets.
    """
    observations = _matrix(block.arrays, "observations")
    if not td:
        return Rows(block.start, observations, _matrix(block.arrays, "targets"))
    return Rows(
        block.start,
        observations,
        _matrix(block.arrays, "rewards"),
        _matrix(block.arrays, "next_observations"),
        np.ascontiguousarray(_found(block.arrays, "terminated"), bool).reshape(-1),
    )


def check_column(column: int, width: int) -> int:
    """Return the number of a target column.

    Raises:
        ArgumentError: it is not there.
    """
    if not 0 <= column < width:
        raise ArgumentError(f"target must be a column from 0 to {width - 1}, got {column}")
    return column


def _found(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise ArgumentError(f"learning needs {name}, got a block with {', '.join(arrays)}")
    return np.asarray(arrays[name])


def _matrix(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    array = _found(arrays, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ArgumentError(f"{name} must have one row a step, got shape {array.shape}")
    return np.ascontiguousarray(array, np.float32)
