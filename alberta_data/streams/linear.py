"""What the linear streams share: features and noise, rare redraws, the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from alberta_data import keys
from alberta_data.exact import seal, sum_last
from alberta_data.streams.base import MAX_STEPS


class Drawn(NamedTuple):
    """The numbers of one step, or of each of many.

    Attributes:
        features: float32 `(*steps, feature_dim)`.
        noise: float32 `(*steps, 1)`, already times its standard deviation.
    """

    features: Any
    noise: Any


def draw(feature_key: keys.Words, noise_key: keys.Words, stream: Any) -> Drawn:
    """Promise features and noise at the standard deviations of `stream` (features: 1 where it has none)."""
    return Drawn(
        keys.Normal(feature_key, stream.feature_dim, getattr(stream, "feature_std", 1.0)),
        keys.Normal(noise_key, 1, stream.noise_std),
    )


def due(count: Any, interval: int) -> Any:
    """Say whether a step is a multiple of `interval`; intervals beyond the counter come round at step 0 alone."""
    return count % within_counter(interval) == 0


def within_counter(interval: int) -> int:
    """Return `interval`, or the counter's largest value where it is longer: no stream gets that far."""
    return min(interval, MAX_STEPS)


def along_steps(values: Any, like: Any) -> Any:
    """Return `values`, one a feature, with an axis of length 1 for each axis of steps that `like` has."""
    return values.reshape((1,) * (like.ndim - 1) + values.shape)


def redrawn(due: Any, fresh: Callable[[], Any], old: Any) -> Any:
    """Return `fresh()` where `due`, else `old`; in a loop the fresh numbers are only made when they are due."""
    from jax import lax

    return lax.cond(due, fresh, lambda: old)


def target(weights: Any, features: Any, noise: Any, zero: Any) -> Any:
    """Return w·x + noise, float32 `(*steps, 1)`; every product sealed, added in a fixed order."""
    return (dot(weights, features, zero) + seal(noise[..., 0], zero))[..., None]


def dot(weights: Any, features: Any, zero: Any) -> Any:
    """Return w·x over the last axis, every product sealed, in the order of `exact.sum_last`."""
    return sum_last(seal(weights * features, zero))
