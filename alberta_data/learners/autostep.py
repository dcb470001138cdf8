"""Autostep: step-sizes that need no tuning (Mahmood, Sutton, Degris, Pilarski, 2012).

A. R. Mahmood, R. S. Sutton, T. Degris, P. M. Pilarski, "Tuning-free step-size adaptation", ICASSP 2012, table 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from alberta_data.exact import exp, seal, sum_features
from alberta_data.learners.base import Optimizer, Packed, check_feature_dim, number, with_bias
from alberta_data.parameters import parameter

STEP_SIZE_BOUNDS = (1e-8, 1.0)


class AutostepState(NamedTuple):
    """State of `Autostep`.

    Attributes:
        step_sizes: α, `(feature_dim,)`.
        traces: h, `(feature_dim,)`.
        normalizers: v, `(feature_dim,)`.
        meta_step_size: μ, `()`.
        tau: τ, `()`.
        bias_step_size: the bias's α, `()`.
        bias_trace: the bias's h, `()`.
        bias_normalizer: the bias's v, `()`.
    """

    step_sizes: Any
    traces: Any
    normalizers: Any
    meta_step_size: Any
    tau: Any
    bias_step_size: Any
    bias_trace: Any
    bias_normalizer: Any


@dataclass(frozen=True)
class Autostep(Optimizer):
    """Mahmood and others (2012), table 1. In this order, δ being the error and the bias one more input equal to 1.

    `g = δ x h`, `v = max(|g|, v + (1/τ) α x² (|g| − v))`, `α = α · exp(μ g / v)` where v > 0,
    `M = max(Σ α x², 1)`, `α = clip(α / M, 1e−8, 1)`, `w += α δ x`, `h = h (1 − α x²) + α δ x`.

    Args:
        initial_step_size: every α at the start, above 0. Steps keep α within 1e−8 … 1.
        meta_step_size: μ, at least 0.
        tau: τ, the time over which v is remembered, above 0.
    """

    name: ClassVar[str] = "autostep"
    normalizer_row: ClassVar[int | None] = 2

    initial_step_size: float = parameter("every step-size at the start", 0.01, above=0)
    meta_step_size: float = parameter("μ, the step-size of the step-sizes", 0.01, minimum=0)
    tau: float = parameter("τ, the time over which the normaliser is remembered", 10000.0, above=0)

    def init(self, feature_dim: int) -> AutostepState:
        """Return the state before the first step: no trace, no normaliser."""
        import jax.numpy as jnp

        size = check_feature_dim(feature_dim)
        return AutostepState(
            step_sizes=jnp.full(size, self.initial_step_size, jnp.float32),
            traces=jnp.zeros(size, jnp.float32),
            normalizers=jnp.zeros(size, jnp.float32),
            meta_step_size=jnp.float32(self.meta_step_size),
            tau=jnp.float32(self.tau),
            bias_step_size=jnp.float32(self.initial_step_size),
            bias_trace=jnp.float32(0.0),
            bias_normalizer=jnp.float32(0.0),
        )

    @staticmethod
    def pack(state: AutostepState) -> Packed:
        """Return the rows α, h, v and the numbers μ, τ."""
        return Packed(
            (
                with_bias(state.step_sizes, state.bias_step_size),
                with_bias(state.traces, state.bias_trace),
                with_bias(state.normalizers, state.bias_normalizer),
            ),
            (number(state.meta_step_size), number(state.tau)),
        )

    @staticmethod
    def unpack(packed: Packed) -> AutostepState:
        """Return the state that `pack` came from."""
        (alpha, h, v), (mu, tau) = packed.rows, packed.numbers
        return AutostepState(alpha[:-1], h[:-1], v[:-1], mu[0], tau[0], alpha[-1], h[-1], v[-1])

    @staticmethod
    def rule(packed: Packed, error: Any, x: Any, zero: Any) -> tuple[Any, Packed, Any]:
        """Return the step, the new state, and the step-sizes."""
        import jax.numpy as jnp
        from jax import lax

        (alpha, h, v), (mu, tau) = packed.rows, packed.numbers
        squares = x * x
        g = error * x * h
        size = jnp.abs(g)
        faded = v + seal((1.0 / tau) * alpha * squares * (size - v), zero)
        # `maximum`, NaN where either is: one instruction where `jnp.maximum` takes four.
        v = jnp.where(size > faded, size, faded)
        # e^0 is 1 exactly, so α stays as it is where v is 0.
        alpha = alpha * exp(jnp.where(v > 0.0, mu * g / v, 0.0), zero)
        total = sum_features(seal(alpha * squares, zero))[None]
        alpha = alpha / lax.optimization_barrier(jnp.maximum(total, 1.0))
        alpha = lax.optimization_barrier(jnp.clip(alpha, *STEP_SIZE_BOUNDS))
        step = seal(alpha * error * x, zero)
        h = seal(h * (1.0 - seal(alpha * squares, zero)), zero) + step
        return step, packed._replace(rows=(alpha, h, v)), alpha
