"""Weights that go round a few fixed configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from alberta_data import keys
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class CyclicState(NamedTuple):
    """The key of the next step, all weights `(num_configurations, feature_dim)`, and the steps taken."""

    key: Any
    configurations: Any
    step_count: Any = 0


@dataclass(frozen=True)
class CyclicStream(Stream):
    """Linear targets whose weights come back: one of `num_configurations` for `cycle_length` steps each, in turn.

    Raises:
        ArgumentError: a parameter out of its range.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    cycle_length: int = parameter("steps that one configuration stays", 500, minimum=1)
    num_configurations: int = parameter("how many there are", 4, minimum=1, maximum=2**20)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)
    feature_std: float = parameter("standard deviation of the features", 1.0, minimum=0)

    name = "cyclic"
    formula = "w = W[(t // cycle_length) mod num_configurations]; x ~ feature_std N(0, I); y = w·x + noise_std N(0, 1)"
    paper = "Ring (1994), Continual learning in reinforcement environments (recurring tasks)"
    recursive = False

    def initial(self, key: keys.Words) -> CyclicState:
        """Draw all configurations."""
        size = self.num_configurations * self.feature_dim
        drawn = keys.normal(keys.split(key, 1), size).reshape(self.num_configurations, self.feature_dim)
        return CyclicState(keys.split(key, 0), drawn)

    def draw(self, key: keys.Words) -> linear.Drawn:
        """Promise features and noise."""
        return linear.draw(keys.split(key, 1), keys.split(key, 2), self)

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Pick the configuration whose turn it is."""
        turn = state.step_count // linear.within_counter(self.cycle_length)
        return state, {"true_weights": state.configurations[turn % self.num_configurations]}

    def emit(self, seen: Any, drawn: linear.Drawn, zero: Any) -> tuple[Any, Any]:
        """Return x and w·x + noise."""
        return drawn.features, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)

    def change_points(self, steps: int) -> range:
        """Every `cycle_length` steps, from 0."""
        return range(0, steps, self.cycle_length)
