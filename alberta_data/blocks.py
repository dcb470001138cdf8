"""The currency of the house: a step, and a block of consecutive steps.

Whatever makes blocks can be stored or learned from; whatever takes blocks does not ask where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

CHECKPOINT_STEPS = 2**17
"""Steps between two states that are kept; every block ends at a multiple of it at the latest."""


class TimeStep(NamedTuple):
    """One step of a stream.

    Attributes:
        observation: the features, shape `(feature_dim,)`, float32.
        target: the value to predict, shape `(1,)`, float32 (wider for some Gymnasium modes).
    """

    observation: Any
    target: Any


@dataclass(frozen=True)
class Block:
    """Consecutive steps as host arrays.

    Attributes:
        start: index of the first step.
        arrays: name → array whose first axis is the step; all of one length. `observations (n, D)` and
            `targets (n, K)` are always among them where a learner reads the block.
    """

    start: int
    arrays: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        """The number of steps."""
        return len(next(iter(self.arrays.values())))

    @property
    def stop(self) -> int:
        """Index of the step after the last one."""
        return self.start + len(self)

    @property
    def observations(self) -> np.ndarray:
        """The features, `(n, D)`."""
        return self.arrays["observations"]

    @property
    def targets(self) -> np.ndarray:
        """The targets, `(n, K)`."""
        return self.arrays["targets"]
