"""Incremental delta-bar-delta: a step-size a weight, itself learned (Sutton, 1992).

R. S. Sutton, "Adapting bias by gradient descent: an incremental version of delta-bar-delta", AAAI-92, figure 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from alberta_data.exact import exp, seal
from alberta_data.learners.base import Optimizer, Packed, check_feature_dim, number, with_bias
from alberta_data.parameters import is_tracer, parameter

LOG_BOUNDS = (-10.0, 2.0)
BIAS_BOUNDS = (1e-6, 1.0)


class IDBDState(NamedTuple):
    """State of `IDBD`.

    Attributes:
        log_step_sizes: β, `(feature_dim,)`.
        traces: h, `(feature_dim,)`.
        meta_step_size: θ, `()`.
        bias_step_size: a, `()`; not a logarithm.
        bias_trace: the bias's h, `()`.
    """

    log_step_sizes: Any
    traces: Any
    meta_step_size: Any
    bias_step_size: Any
    bias_trace: Any


@dataclass(frozen=True)
class IDBD(Optimizer):
    """Sutton (1992), figure 2. In this order, δ being the error.

    `β = clip(β + θ δ x h, −10, 2)`, `α = exp(β)`, `w += α δ x`, `h = h · max(0, 1 − α x²) + α δ x`.

    The bias is an input that is always 1 with a step-size a of its own: `a = clip(a · exp(θ δ h), 1e−6, 1)`.

    Args:
        initial_step_size: every α at the start, above 0. Steps keep α within exp(−10) … exp(2).
        meta_step_size: θ, at least 0.
    """

    name: ClassVar[str] = "idbd"

    initial_step_size: float = parameter("every step-size at the start", 0.01, above=0)
    meta_step_size: float = parameter("θ, the step-size of the step-sizes", 0.01, minimum=0)

    def init(self, feature_dim: int) -> IDBDState:
        """Return the state before the first step: β = ln(initial step-size), no trace."""
        import jax.numpy as jnp

        size = check_feature_dim(feature_dim)
        return IDBDState(
            log_step_sizes=jnp.full(size, _log(self.initial_step_size), jnp.float32),
            traces=jnp.zeros(size, jnp.float32),
            meta_step_size=jnp.float32(self.meta_step_size),
            bias_step_size=jnp.float32(self.initial_step_size),
            bias_trace=jnp.float32(0.0),
        )

    @staticmethod
    def pack(state: IDBDState) -> Packed:
        """Return the rows β (a in the bias's place) and h, and θ."""
        return Packed(
            (
                with_bias(state.log_step_sizes, state.bias_step_size),
                with_bias(state.traces, state.bias_trace),
            ),
            (number(state.meta_step_size),),
        )

    @staticmethod
    def unpack(packed: Packed) -> IDBDState:
        """Return the state that `pack` came from."""
        (beta, h), (theta,) = packed.rows, packed.numbers
        return IDBDState(beta[:-1], h[:-1], theta[0], beta[-1], h[-1])

    @staticmethod
    def rule(packed: Packed, error: Any, x: Any, zero: Any) -> tuple[Any, Packed, Any]:
        """Return the step, the new state, and the step-sizes."""
        import jax.numpy as jnp
        from jax import lax

        (beta, h), (theta,) = packed.rows, packed.numbers
        is_bias = lax.broadcasted_iota(jnp.int32, beta.shape, 0) == beta.shape[0] - 1
        change = seal(theta * error * x * h, zero)
        beta = jnp.where(is_bias, beta, jnp.clip(beta + change, *LOG_BOUNDS))
        # One exponential for weights and bias: exp(β) there, the factor exp(θ δ h) here.
        power = exp(jnp.where(is_bias, change, beta), zero)
        beta = jnp.where(is_bias, jnp.clip(beta * power, *BIAS_BOUNDS), beta)
        step_sizes = lax.optimization_barrier(jnp.where(is_bias, beta, power))
        step = seal(step_sizes * error * x, zero)
        decay = 1.0 - seal(step_sizes * (x * x), zero)
        # `maximum` with 0, NaN where it is: one instruction where `jnp.maximum` takes four.
        decay = jnp.where(decay < 0.0, 0.0, decay)
        h = seal(h * decay, zero) + step
        return step, packed._replace(rows=(beta, h)), step_sizes


def _log(value: Any) -> Any:
    """Return ln(value): in float64 on the host, the same number everywhere, but for a value that jax is tracing."""
    if is_tracer(value):
        import jax.numpy as jnp

        return jnp.log(value)
    return np.float32(np.log(value))
