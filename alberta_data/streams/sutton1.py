"""Sutton (1992), experiment 1: a few relevant inputs whose signs flip, among irrelevant ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from alberta_data import keys
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class SuttonExperiment1State(NamedTuple):
    """The key of the next step, the signs of the relevant inputs `(num_relevant,)`, and the steps taken."""

    key: Any
    signs: Any
    step_count: Any = 0


class SuttonExperiment1Drawn(NamedTuple):
    """The features."""

    features: Any


@dataclass(frozen=True)
class SuttonExperiment1Stream(Stream):
    """The target is the sum of the relevant inputs, each with a sign; one sign flips every `change_interval` steps.

    Raises:
        ArgumentError: a parameter out of its range.
    """

    num_relevant: int = parameter("inputs that count", 5, minimum=1, maximum=2**24)
    num_irrelevant: int = parameter("inputs that do not", 15, minimum=0, maximum=2**24)
    change_interval: int = parameter("steps between flips", 20, minimum=1)

    name = "sutton1"
    formula = "one of num_relevant signs flips every change_interval steps; x ~ N(0, I); y = Σ sᵢ xᵢ over the relevant"
    paper = "Sutton (1992), Adapting bias by gradient descent: an incremental version of delta-bar-delta, experiment 1"

    @property
    def feature_dim(self) -> int:  # type: ignore[override]
        """Relevant and irrelevant inputs together."""
        return self.num_relevant + self.num_irrelevant

    @property
    def noise_floor(self) -> float:
        """The target has no noise."""
        return 0.0

    def initial(self, key: keys.Words) -> SuttonExperiment1State:
        """Carry the key on as it is; every sign begins at 1."""
        import jax.numpy as jnp

        return SuttonExperiment1State(key, jnp.ones(self.num_relevant, jnp.float32))

    def draw(self, key: keys.Words) -> SuttonExperiment1Drawn:
        """Promise the features."""
        return SuttonExperiment1Drawn(keys.Normal(keys.split(key, 1), self.feature_dim))

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Flip one sign where a new interval begins, but not at step 0; its key is spent only then."""
        import jax.numpy as jnp

        def flipped() -> Any:
            chosen = keys.randint(keys.split(key, 2), 0, self.num_relevant)
            return jnp.where(jnp.arange(self.num_relevant) == chosen, -state.signs, state.signs)

        flips = linear.due(state.step_count, self.change_interval) & (state.step_count > 0)
        signs = linear.redrawn(flips, flipped, state.signs)
        return state._replace(signs=signs), {"signs": signs}

    def emit(self, seen: Any, drawn: SuttonExperiment1Drawn, zero: Any) -> tuple[Any, Any]:
        """Return x and the signed sum of its relevant part."""
        relevant = drawn.features[..., : self.num_relevant]
        return drawn.features, linear.dot(seen["signs"], relevant, zero)[..., None]

    def change_points(self, steps: int) -> range:
        """Every `change_interval` steps, but not 0."""
        return range(self.change_interval, steps, self.change_interval)
