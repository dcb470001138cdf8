"""Features whose scales, and weights, are replaced all at once, each at its own interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alberta_data import keys
from alberta_data.errors import ArgumentError
from alberta_data.exact import exp_fused
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class DynamicScaleShiftState(NamedTuple):
    """The key of the next step, weights and scales `(feature_dim,)`, and the steps taken."""

    key: Any
    true_weights: Any
    current_scales: Any
    step_count: Any = 0


@dataclass(frozen=True)
class DynamicScaleShiftStream(Stream):
    """Features seen through scales that are drawn anew, log-uniformly, at an interval; the target sees them unscaled.

    Raises:
        ArgumentError: a parameter out of its range, or `min_scale` above `max_scale`.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    scale_change_interval: int = parameter("steps between changes of the scales", 2000, minimum=1)
    weight_change_interval: int = parameter("steps between changes of the weights", 1000, minimum=1)
    min_scale: float = parameter("smallest scale", 0.01, minimum=1e-37)
    max_scale: float = parameter("largest scale", 100.0, maximum=1e37)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)

    name = "dynamic-scale-shift"
    formula = (
        "w ~ N(0, I) every weight_change_interval steps; s ~ exp U(ln min_scale, ln max_scale) every "
        "scale_change_interval steps; z ~ N(0, I); x = z s; y = w·z + noise_std N(0, 1)"
    )
    paper = "alberta_framework (2025), streams.synthetic"

    def __post_init__(self) -> None:
        """Check the parameters, and the bounds of the scales against each other."""
        super().__post_init__()
        if self.min_scale > self.max_scale:
            raise ArgumentError(f"min_scale must be at most max_scale, got {self.min_scale} and {self.max_scale}")

    def initial(self, key: keys.Words) -> DynamicScaleShiftState:
        """Draw the first weights and scales (never used: step 0 draws its own)."""
        weights = keys.normal(keys.split(key, 1), self.feature_dim)
        return DynamicScaleShiftState(keys.split(key, 0), weights, self._scales(keys.split(key, 2)))

    def _scales(self, key: keys.Words) -> Any:
        # Logarithms of the rounded bounds: the published definition takes them in float32.
        low, high = (math.log(np.float32(bound)) for bound in (self.min_scale, self.max_scale))
        return exp_fused(keys.uniform(key, self.feature_dim, low, high))

    def draw(self, key: keys.Words) -> linear.Drawn:
        """Promise features and noise."""
        return linear.draw(keys.split(key, 3), keys.split(key, 4), self)

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Replace scales and weights where their new intervals begin; their keys are spent only then."""
        scales = linear.redrawn(
            linear.due(state.step_count, self.scale_change_interval),
            lambda: self._scales(keys.split(key, 2)),
            state.current_scales,
        )
        weights = linear.redrawn(
            linear.due(state.step_count, self.weight_change_interval),
            lambda: keys.normal(keys.split(key, 1), self.feature_dim),
            state.true_weights,
        )
        after = state._replace(true_weights=weights, current_scales=scales)
        return after, {"true_weights": weights, "current_scales": scales}

    def emit(self, seen: Any, drawn: linear.Drawn, zero: Any) -> tuple[Any, Any]:
        """Return z·s and w·z + noise."""
        observations = drawn.features * seen["current_scales"]
        return observations, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)

    def change_points(self, steps: int) -> range:
        """Every `weight_change_interval` steps, from 0."""
        return range(0, steps, self.weight_change_interval)
