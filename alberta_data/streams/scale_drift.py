"""Features whose scales wander while the weights drift slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alberta_data import keys
from alberta_data.errors import ArgumentError
from alberta_data.exact import exp, seal
from alberta_data.parameters import parameter
from alberta_data.streams import linear
from alberta_data.streams.base import Stream


class ScaleDriftState(NamedTuple):
    """The key of the next step, weights and log-scales `(feature_dim,)`, and the steps taken."""

    key: Any
    true_weights: Any
    log_scales: Any
    step_count: Any = 0


class ScaleDriftDrawn(NamedTuple):
    """The steps of weights and log-scales, the unscaled features, and the noise."""

    weight_step: Any
    scale_step: Any
    features: Any
    noise: Any


@dataclass(frozen=True)
class ScaleDriftStream(Stream):
    """Features seen through scales that wander on a log scale between two walls; the target sees them unscaled.

    Raises:
        ArgumentError: a parameter out of its range, or `min_log_scale` above `max_log_scale`.
    """

    feature_dim: int = parameter("features of an observation", minimum=1, cli_default=20)
    weight_drift_rate: float = parameter("standard deviation of a weight's step", 0.001, minimum=0)
    scale_drift_rate: float = parameter("standard deviation of a log-scale's step", 0.01, minimum=0)
    min_log_scale: float = parameter("lower wall of the log-scales", -4.0, minimum=-80)
    max_log_scale: float = parameter("upper wall of the log-scales", 4.0, maximum=80)
    noise_std: float = parameter("standard deviation of the target's noise", 0.1, minimum=0)

    name = "scale-drift"
    formula = (
        "w += weight_drift_rate N(0, I); l = clip(l + scale_drift_rate N(0, I), min_log_scale, max_log_scale); "
        "z ~ N(0, I); x = z exp(l); y = w·z + noise_std N(0, 1)"
    )
    paper = "alberta_framework (2025), streams.synthetic"

    def __post_init__(self) -> None:
        """Check the parameters, and the walls against each other."""
        super().__post_init__()
        if self.min_log_scale > self.max_log_scale:
            raise ArgumentError(
                f"min_log_scale must be at most max_log_scale, got {self.min_log_scale} and {self.max_log_scale}"
            )

    def initial(self, key: keys.Words) -> ScaleDriftState:
        """Draw the first weights; every scale begins at 1."""
        import jax.numpy as jnp

        weights = keys.normal(keys.split(key, 1), self.feature_dim)
        return ScaleDriftState(keys.split(key, 0), weights, jnp.zeros(self.feature_dim, jnp.float32))

    def draw(self, key: keys.Words) -> ScaleDriftDrawn:
        """Promise both steps, features and noise."""
        return ScaleDriftDrawn(
            keys.Normal(keys.split(key, 1), self.feature_dim, self.weight_drift_rate),
            keys.Normal(keys.split(key, 2), self.feature_dim, self.scale_drift_rate),
            *linear.draw(keys.split(key, 3), keys.split(key, 4), self),
        )

    def drift(self, state: Any, drawn: Any, key: keys.Words, zero: Any) -> tuple[Any, Any]:
        """Move the weights, then the log-scales, which stop at the walls."""
        import jax.numpy as jnp

        weights = state.true_weights + seal(drawn.weight_step, zero)
        logs = state.log_scales + seal(drawn.scale_step, zero)
        logs = jnp.where(logs < np.float32(self.min_log_scale), np.float32(self.min_log_scale), logs)
        logs = jnp.where(logs > np.float32(self.max_log_scale), np.float32(self.max_log_scale), logs)
        after = state._replace(true_weights=weights, log_scales=logs)
        return after, {"true_weights": weights, "log_scales": logs}

    def emit(self, seen: Any, drawn: Any, zero: Any) -> tuple[Any, Any]:
        """Return z·exp(l) and w·z + noise."""
        observations = drawn.features * exp(seen["log_scales"], zero)
        return observations, linear.target(seen["true_weights"], drawn.features, drawn.noise, zero)
