"""Any learner: an object with `init` and `update` in a compiled loop of its own, with its own metrics.

`update(state, observation, target)` returns an object with `state` and `metrics` (any tree of arrays); with transitions
`predict(state, observation)` is called as well. The bits are those of the learner's own text in this loop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from alberta_data.replay.groups import padded, size_for, tiles
from alberta_data.replay.rows import Rows


class PlainLearner:
    """A learner of any kind, advanced over rows.

    Args:
        learner: an object with `init` and `update`.
        state: its state.
        column: the target column it predicts.
        gamma: the discount of TD on stored transitions; None for plain targets.
    """

    def __init__(self, learner: Any, state: Any, column: int = 0, gamma: float | None = None):
        import jax

        self.learner = learner
        self.state = jax.tree.map(jax.numpy.asarray, state)
        self.stopped: int | None = None
        self._column = column
        self._gamma = gamma
        self._watched = _finite_leaves(self.state)
        try:
            self._loop = _shared_loop(learner, _held(learner), gamma is not None)
        except TypeError:  # not hashable: compiled for this object, as it now is, alone
            self._loop = _make_loop(learner, gamma is not None)

    def advance(self, rows: Rows) -> Any:
        """Learn from rows and return the metrics of their steps: the learner's own tree, `(n, …)` each."""
        import jax

        parts = []
        for first, steps, size in tiles(rows):
            data = self._data(rows, slice(first, first + steps), size)
            before = self.state
            self.state, metrics = self._run(before, data, steps)
            if self.stopped is None and not self._finite(self.state):
                self.stopped = rows.start + first + self._lost_at(before, rows, first, steps)
            parts.append(jax.tree.map(lambda leaf, steps=steps: np.asarray(leaf)[:steps], metrics))
        return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def _data(self, rows: Rows, window: slice, size: int) -> tuple[np.ndarray, ...]:
        data = [rows.observations[window], rows.targets[window, self._column]]
        if self._gamma is not None:
            data += [rows.next_observations[window], rows.terminated[window]]
        return tuple(padded(array, size) for array in data)

    def _run(self, state: Any, data: tuple[np.ndarray, ...], steps: int) -> tuple[Any, Any]:
        return self._loop(state, data, np.int32(steps), np.float32(self._gamma or 0.0))

    def _finite(self, state: Any) -> bool:
        return self._watched <= _finite_leaves(state)

    def _lost_at(self, state: Any, rows: Rows, first: int, steps: int) -> int:
        low, high = 0, steps
        while high - low > 1:
            count = (high - low) // 2
            start = first + low
            data = self._data(rows, slice(start, start + count), size_for(rows, count))
            after, _ = self._run(state, data, count)
            if self._finite(after):
                low, state = low + count, after
            else:
                high = low + count
        return high - 1


def _finite_leaves(state: Any) -> set[int]:
    """Return which leaves are finite floats: those that a learner begins with must stay so."""
    import jax

    leaves = map(np.asarray, map(_words, jax.tree.leaves(state)))
    return {at for at, leaf in enumerate(leaves) if leaf.dtype.kind == "f" and np.isfinite(leaf).all()}


def _words(leaf: Any) -> Any:
    """Return a leaf as NumPy can see it: the words of a typed key, any other leaf itself."""
    import jax

    is_key = hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


@lru_cache(maxsize=64)
def _shared_loop(learner: Any, held: Any, td: bool) -> Any:
    return _make_loop(learner, td)


def _held(thing: Any) -> Any:
    """Return what a learner and its parts hold now: compiled code keeps that of the time when it was traced.

    Raises:
        TypeError: something that can't be compared.
    """
    attributes = getattr(thing, "__dict__", None)
    if attributes is None or isinstance(thing, type) or callable(thing):
        hash(thing)
        return thing
    return type(thing), tuple((name, _held(value)) for name, value in sorted(attributes.items()))


def _make_loop(learner: Any, td: bool) -> Any:
    """Return the compiled `(state, data, steps, gamma) -> (state, metrics)`."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def run(state: Any, data: tuple[Any, ...], steps: Any, gamma: Any) -> tuple[Any, Any]:
        def row(t: Any) -> list[Any]:
            return [lax.dynamic_index_in_dim(table, t, 0, keepdims=False) for table in data]

        def update(state: Any, t: Any) -> Any:
            x, y, *ahead = row(t)
            if td:
                value = jnp.reshape(learner.predict(state, ahead[0]), ())
                y = jnp.where(ahead[1], y, y + gamma * value)
            return learner.update(state, x, y[None])

        def body(carry: Any) -> Any:
            t, state, metrics = carry
            result = update(state, t)
            metrics = jax.tree.map(
                lambda table, value: lax.dynamic_update_index_in_dim(table, jnp.asarray(value, table.dtype), t, 0),
                metrics,
                result.metrics,
            )
            after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), result.state, state)
            return t + 1, after, metrics

        shapes = jax.eval_shape(lambda state, t: update(state, t).metrics, state, jnp.int32(0))
        metrics = jax.tree.map(lambda leaf: jnp.zeros((data[0].shape[0], *leaf.shape), leaf.dtype), shapes)
        start = (jnp.int32(0), state, metrics)
        return lax.while_loop(lambda carry: carry[0] < steps, body, start)[1:]

    return jax.jit(run)
