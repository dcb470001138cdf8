"""One step of a linear learner on packed states: what `update` and the compiled loop of `replay` both run.

Everything that is not the two rules is here: the prediction, the error, the order in which normaliser, prediction and
optimizer come, and the metrics. Lanes or none, the text is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from alberta_data.exact import seal, sum_features
from alberta_data.learners.base import Normalizer, Optimizer, Packed


class PackedLearner(NamedTuple):
    """The state of a learner, or of several in lanes, as the compiled loop carries it.

    Attributes:
        weights: `(D + 1, …)`, the bias last.
        optimizer: the optimizer's packed state.
        normalizer: the normaliser's, or None.
    """

    weights: Any
    optimizer: Packed
    normalizer: Packed | None


class Taken(NamedTuple):
    """What one step gave, each `(1, …)` unless said otherwise.

    Attributes:
        state: the packed state after the step.
        prediction: before the step.
        error: target minus prediction.
        step_sizes: `(D + 1, …)`, or `(1, …)` where all are one.
    """

    state: PackedLearner
    prediction: Any
    error: Any
    step_sizes: Any


def predict(state: PackedLearner, x: Any, zero: Any) -> Any:
    """Return `w·x + b`, `(1, …)`, of an observation `(D,)` or `(D, 1)` that the normaliser has not touched."""
    return _weighted(state.weights, _as_features(state, x), zero)


def step(optimizer: type[Optimizer], normalizer: type[Normalizer] | None, state: PackedLearner, *data: Any) -> Taken:
    """Return what one pair does to a learner.

    Args:
        optimizer: whose rule to follow.
        normalizer: likewise, or None.
        state: the packed state.
        *data: the observation `(D,)` or, with lanes, `(D, 1)`; the target `(1, …)`; a run-time int32 zero.
    """
    from jax import lax

    observation, target, zero = data
    if normalizer is not None and state.normalizer is not None:
        state = state._replace(normalizer=normalizer.rule(state.normalizer, observation, zero))
    x = _as_features(state, observation)
    prediction = _weighted(state.weights, x, zero)
    error = lax.optimization_barrier(target - prediction)
    change, optimizer_state, step_sizes = optimizer.rule(state.optimizer, error, x, zero)
    state = state._replace(weights=state.weights + change, optimizer=optimizer_state)
    return Taken(state, prediction, error, step_sizes)


def metrics(taken: Taken) -> tuple[Any, ...]:
    """Return squared error, error, mean step-size and, with a normaliser, its mean variance, each `(1, …)`."""
    found = (taken.error * taken.error, taken.error, mean_step_size(taken.step_sizes))
    if taken.state.normalizer is None:
        return found
    return (*found, mean_features(taken.state.normalizer.rows[1]))


def mean_step_size(step_sizes: Any) -> Any:
    """Return the mean over the weights, without the bias, `(1, …)`."""
    return step_sizes if step_sizes.shape[0] == 1 else mean_features(step_sizes[:-1])


def mean_features(row: Any) -> Any:
    """Return the mean over axis 0, `(1, …)`: the sum in its fixed order times float32(1/n)."""
    return sum_features(row)[None] * np.float32(1.0 / row.shape[0])


def _as_features(state: PackedLearner, observation: Any) -> Any:
    """Return the features that the weights meet: normalised, and a last one equal to 1."""
    import jax.numpy as jnp

    if state.normalizer is not None:
        observation = Normalizer.scale(state.normalizer, observation)
    return jnp.concatenate([observation, jnp.ones((1, *observation.shape[1:]), jnp.float32)])


def _weighted(weights: Any, x: Any, zero: Any) -> Any:
    return sum_features(seal(weights * x, zero))[None]
