"""Weights that swing as sines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alberta_data import keys
from alberta_data.exact import seal
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class PeriodicChangeState(NamedTuple):
    """The key of the next step, centres and phases of the weights `(feature_dim,)`, and the steps taken."""

    key: Any
    base_weights: Any
    phases: Any
    step_count: Any = 0


@dataclass(frozen=True)
class PeriodicChangeStream(Stream):
    """Linear targets whose weights swing around their centres, each with a phase of its own.

    The step is reduced modulo the period as an integer, before anything is rounded: the weights stay within
    `2e-6 · amplitude` and one ulp of the formula however long the stream.

    Raises:
        ArgumentError: a parameter out of its range.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    period: int = parameter("steps of one swing", 1000, minimum=1)
    amplitude: float = parameter("how far a weight swings", 1.0)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)
    feature_std: float = parameter("standard deviation of the features", 1.0, minimum=0)

    name = "periodic"
    formula = "w = b + amplitude sin(2π t / period + φ); x ~ feature_std N(0, I); y = w·x + noise_std N(0, 1)"
    paper = "alberta_framework (2025), streams.synthetic"
    recursive = False

    def initial(self, key: keys.Words) -> PeriodicChangeState:
        """Draw centres and phases."""
        phases = keys.uniform(keys.split(key, 2), self.feature_dim, 0.0, 2 * math.pi)
        return PeriodicChangeState(keys.split(key, 0), keys.normal(keys.split(key, 1), self.feature_dim), phases)

    def draw(self, key: keys.Words) -> linear.Drawn:
        """Promise features and noise."""
        return linear.draw(keys.split(key, 1), keys.split(key, 2), self)

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Place the weights on their sines."""
        import jax.numpy as jnp
        from jax import lax

        within = state.step_count % linear.within_counter(self.period)
        # The barrier keeps 2π / period from being folded into one constant.
        turn = lax.optimization_barrier(within.astype(jnp.float32) / np.float32(self.period))[..., None]
        angle = seal(np.float32(2 * math.pi) * turn, zero) + linear.along_steps(state.phases, turn)
        swing = seal(np.float32(self.amplitude) * jnp.sin(angle), zero)
        return state, {"true_weights": linear.along_steps(state.base_weights, swing) + swing}

    def emit(self, seen: Any, drawn: linear.Drawn, zero: Any) -> tuple[Any, Any]:
        """Return x and w·x + noise."""
        return drawn.features, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)
