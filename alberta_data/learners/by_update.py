"""A linear learner around an optimizer or a normaliser of the user's own, which has an `update` and no rule."""

from __future__ import annotations

from typing import Any

from alberta_data.exact import sum_features


def predict(learner: Any, state: Any, x: Any) -> Any:
    """Return `w·x + b`, `(1,)`, x normalised by the state as it is."""
    inner, features = _inner(learner, state), _features(x)
    if learner.normalizer is not None:
        features = learner.normalizer.normalize_only(state.normalizer_state, features)
    return _prediction(inner, features)


def update(learner: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return state, prediction, error and metrics of one pair, as `UpdateResult` holds them."""
    import jax.numpy as jnp

    inner, features, figures = _inner(learner, state), _features(x), []
    if learner.normalizer is not None:
        features, scales = learner.normalizer.normalize(state.normalizer_state, features)
        figures = [jnp.mean(scales.var)]
    prediction = _prediction(inner, features)
    error = y - prediction
    change = learner.optimizer.update(inner.optimizer_state, error[0], features)
    after = inner._replace(
        weights=inner.weights + change.weight_delta,
        bias=inner.bias + change.bias_delta,
        optimizer_state=change.new_state,
    )
    if learner.normalizer is not None:
        after = state._replace(learner_state=after, normalizer_state=scales)
    step_size = change.metrics.get("mean_step_size", 0.0)
    metrics = jnp.stack([jnp.float32(value) for value in (error[0] ** 2, error[0], step_size, *figures)])
    return after, prediction, error, metrics


def _inner(learner: Any, state: Any) -> Any:
    return state if learner.normalizer is None else state.learner_state


def _features(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(x, jnp.float32)


def _prediction(state: Any, features: Any) -> Any:
    return (sum_features(state.weights * features) + state.bias).reshape(1)
