"""Weights that are replaced all at once, every so many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from alberta_data import keys
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class AbruptChangeState(NamedTuple):
    """The key of the next step, the weights `(feature_dim,)`, and the steps taken."""

    key: Any
    true_weights: Any
    step_count: Any = 0


@dataclass(frozen=True)
class AbruptChangeStream(Stream):
    """Linear targets whose weights are drawn anew every `change_interval` steps, the first time at step 0.

    Raises:
        ArgumentError: a parameter out of its range.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    change_interval: int = parameter("steps between changes of the weights", 1000, minimum=1)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)
    feature_std: float = parameter("standard deviation of the features", 1.0, minimum=0)

    name = "abrupt"
    formula = "w ~ N(0, I) every change_interval steps; x ~ feature_std N(0, I); y = w·x + noise_std N(0, 1)"
    paper = "Sutton (1992), Adapting bias by gradient descent; Mahmood et al. (2012), Tuning-free step-size adaptation"

    def initial(self, key: keys.Words) -> AbruptChangeState:
        """Draw the first weights (never used: step 0 draws its own)."""
        return AbruptChangeState(keys.split(key, 0), keys.normal(keys.split(key, 1), self.feature_dim))

    def draw(self, key: keys.Words) -> linear.Drawn:
        """Draw features and noise."""
        return linear.draw(keys.split(key, 2), keys.split(key, 3), self)

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Replace the weights where a new interval begins; their key is spent only then."""
        weights = linear.redrawn(
            linear.due(state.step_count, self.change_interval),
            lambda: keys.normal(keys.split(key, 1), self.feature_dim),
            state.true_weights,
        )
        return state._replace(true_weights=weights), {"true_weights": weights}

    def emit(self, seen: Any, drawn: linear.Drawn, zero: Any) -> tuple[Any, Any]:
        """Return x and w·x + noise."""
        return drawn.features, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)

    def change_points(self, steps: int) -> range:
        """Every `change_interval` steps, from 0."""
        return range(0, steps, self.change_interval)
