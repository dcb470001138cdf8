"""Normalisers: each feature brought to mean 0 and variance 1 by what has been seen of it so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from alberta_data.exact import seal
from alberta_data.learners.base import MAX_COUNT, Normalizer, Packed, check_feature_dim, count, number
from alberta_data.parameters import parameter


class NormalizerState(NamedTuple):
    """State of `OnlineNormalizer`.

    Attributes:
        mean: running mean, `(feature_dim,)`.
        var: running variance, `(feature_dim,)`.
        sample_count: observations seen, `()` int32; it stays at 2^31 − 2.
        decay: `()`.
    """

    mean: Any
    var: Any
    sample_count: Any
    decay: Any


class WelfordState(NamedTuple):
    """State of `WelfordNormalizer`: as `NormalizerState`, without a decay."""

    mean: Any
    var: Any
    sample_count: Any


def create_normalizer_state(feature_dim: int, decay: float = 0.99) -> NormalizerState:
    """Return the state of an `OnlineNormalizer` before its first observation: mean 0, variance 1, count 0."""
    return OnlineNormalizer(decay=decay).init(feature_dim)


def _next(counted: Any) -> Any:
    """Return the count after one more observation. An int32: as a float32 it would stall at 2^24."""
    import jax.numpy as jnp

    return jnp.minimum(counted, MAX_COUNT) + 1


@dataclass(frozen=True)
class OnlineNormalizer(Normalizer):
    """An exponential moving average that begins as a plain one. Per observation, n being its number from 1.

    `d = min(decay, 1 − 1/(n + 1))`, `e = x − mean`, `mean += (1 − d) e`, `var = max(d var + (1 − d) e (x − mean), ε)`,
    and the output is `(x − mean) / (sqrt(var) + ε)`.

    Args:
        epsilon: ε, above 0.
        decay: what of the past is kept at each observation, 0 to 1.
    """

    name: ClassVar[str] = "ema"

    epsilon: float = parameter("the smallest variance", 1e-8, above=0)
    decay: float = parameter("what of the past is kept at each observation", 0.99, minimum=0, maximum=1)

    def init(self, feature_dim: int) -> NormalizerState:
        """Return the state before the first observation: mean 0, variance 1, count 0."""
        import jax.numpy as jnp

        size = check_feature_dim(feature_dim)
        return NormalizerState(
            jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32), jnp.int32(0), jnp.float32(self.decay)
        )

    def pack(self, state: NormalizerState) -> Packed:
        """Return the rows mean and variance, ε and the decay, and the count."""
        return Packed(
            (state.mean, state.var), (number(self.epsilon), number(state.decay)), (count(state.sample_count),)
        )

    @staticmethod
    def unpack(packed: Packed) -> NormalizerState:
        """Return the state that `pack` came from."""
        return NormalizerState(packed.rows[0], packed.rows[1], packed.counts[0][0], packed.numbers[1][0])

    @staticmethod
    def rule(packed: Packed, x: Any, zero: Any) -> Packed:
        """Return the state after one more observation."""
        import jax.numpy as jnp

        (mean, var), (epsilon, decay), (counted,) = packed
        counted = _next(counted)
        kept = jnp.minimum(decay, 1.0 - 1.0 / (counted + 1).astype(jnp.float32))
        error = x - mean
        change = seal((1.0 - kept) * error, zero)
        mean = mean + change
        var = jnp.maximum(seal(kept * var, zero) + seal(change * (x - mean), zero), epsilon)
        return Packed((mean, var), packed.numbers, (counted,))


EMANormalizer = OnlineNormalizer
"""Another name of `OnlineNormalizer`."""


@dataclass(frozen=True)
class WelfordNormalizer(Normalizer):
    """The exact running mean and the Bessel-corrected variance of all observations, for stationary data.

    Welford (1962), in the form whose terms don't grow with n: `e = x − mean`, `mean += e / n`, and from the second
    observation on `var += (e (x − mean) − var) / (n − 1)`; before it the variance is 1. The output is
    `(x − mean) / (sqrt(var) + ε)`.

    Args:
        epsilon: ε, above 0.
    """

    name: ClassVar[str] = "welford"

    epsilon: float = parameter("what keeps a division by a zero variance finite", 1e-8, above=0)

    def init(self, feature_dim: int) -> WelfordState:
        """Return the state before the first observation: mean 0, variance 1, count 0."""
        import jax.numpy as jnp

        size = check_feature_dim(feature_dim)
        return WelfordState(jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32), jnp.int32(0))

    def pack(self, state: WelfordState) -> Packed:
        """Return the rows mean and variance, ε, and the count."""
        return Packed((state.mean, state.var), (number(self.epsilon),), (count(state.sample_count),))

    @staticmethod
    def unpack(packed: Packed) -> WelfordState:
        """Return the state that `pack` came from."""
        return WelfordState(packed.rows[0], packed.rows[1], packed.counts[0][0])

    @staticmethod
    def rule(packed: Packed, x: Any, zero: Any) -> Packed:
        """Return the state after one more observation."""
        import jax.numpy as jnp

        (mean, var), _, (counted,) = packed
        counted = _next(counted)
        error = x - mean
        mean = mean + error / counted.astype(jnp.float32)
        # Rounding can put the new mean past x; a variance must not turn negative for that.
        square = jnp.maximum(seal(error * (x - mean), zero), 0.0)
        # At n = 2 the old variance, a placeholder, must leave no trace, not even in the rounding.
        later = var + (square - var) / jnp.maximum(counted - 1, 1).astype(jnp.float32)
        var = jnp.where(counted > 2, later, jnp.where(counted == 2, square, var))
        return Packed((mean, var), packed.numbers, (counted,))
