"""Weights that take a small random step at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from alberta_data import keys
from alberta_data.exact import seal
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class RandomWalkState(NamedTuple):
    """The key of the next step, the weights `(feature_dim,)`, and the steps taken."""

    key: Any
    true_weights: Any
    step_count: Any = 0


class RandomWalkDrawn(NamedTuple):
    """The step of the weights, the features, and the noise."""

    weight_step: Any
    features: Any
    noise: Any


@dataclass(frozen=True)
class RandomWalkStream(Stream):
    """Linear targets whose weights drift as a random walk; the target uses the weights after the drift.

    Raises:
        ArgumentError: a parameter out of its range.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    drift_rate: float = parameter("standard deviation of a weight's step", 0.001, minimum=0)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)
    feature_std: float = parameter("standard deviation of the features", 1.0, minimum=0)

    name = "random-walk"
    formula = "w += drift_rate N(0, I); x ~ feature_std N(0, I); y = w·x + noise_std N(0, 1)"
    paper = "Sutton (1992), Gain adaptation beats least squares?"

    def initial(self, key: keys.Words) -> RandomWalkState:
        """Draw the first weights."""
        return RandomWalkState(keys.split(key, 0), keys.normal(keys.split(key, 1), self.feature_dim))

    def draw(self, key: keys.Words) -> RandomWalkDrawn:
        """Promise the weights' step, features and noise."""
        weight_step = keys.Normal(keys.split(key, 1), self.feature_dim, self.drift_rate)
        return RandomWalkDrawn(weight_step, *linear.draw(keys.split(key, 2), keys.split(key, 3), self))

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Move the weights."""
        weights = state.true_weights + seal(drawn.weight_step, zero)
        return state._replace(true_weights=weights), {"true_weights": weights}

    def emit(self, seen: Any, drawn: Any, zero: Any) -> tuple[Any, Any]:
        """Return x and w·x + noise."""
        return drawn.features, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)
