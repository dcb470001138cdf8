"""Learning inside somebody else's `jit`, `vmap` or `grad`: one plain scan over `step` and `update`.

What is traced can't be looked at: a state that leaves the finite numbers is handed back as it is. Every other bit is
that of the loops outside.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.exact import seal, zero_of
from alberta_data.replay.rows import check_column

_WORDS = np.array([0x6A09E667, 0xBB67AE85], np.uint32)


def is_traced(*trees: Any) -> bool:
    """Say whether any leaf is a tracer of jax's."""
    import jax

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def refuse_recordings(*asked: Any) -> None:
    """Refuse what is recorded outside the compiled loop.

    Raises:
        ArgumentError: something is asked for.
    """
    if any(option is not None for option in asked):
        raise ArgumentError(
            "tracking and every must be left out under jit, vmap or grad: call the loop outside of them, "
            "or run_learning_loop_batched for many seeds"
        )


def over_stream(learner: Any, stream: Any, num_steps: int, key: Any, state: Any) -> tuple[Any, Any]:
    """Return state and metrics after `num_steps` steps of a stream from a key; see `run_learning_loop`."""
    from jax import lax

    def turn(carry: Any, idx: Any) -> Any:
        state, at = carry
        # Without it the stream's last product and the learner's first difference would become one operation.
        step, at = stream.step(at, idx)
        step = _sealed(step, zero)
        return _update(learner, state, step.observation, step.target, at)

    zero = _zero_of((key, state))
    begun = _sealed(learner.init(stream.feature_dim), zero) if state is None else state
    (after, _), metrics = lax.scan(turn, _arrays((begun, stream.init(key))), _steps(num_steps))
    return after, metrics


def over_rows(learner: Any, observations: Any, targets: Any, state: Any, column: int | None = None) -> tuple[Any, Any]:
    """Return state and metrics after all rows; see `learn_from_trajectory`.

    Raises:
        ArgumentError: the target column is not there.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    observations, targets = jnp.asarray(observations, jnp.float32), jnp.asarray(targets, jnp.float32)
    targets = targets.reshape(len(observations), -1)

    zero = _zero_of((observations, targets, state))
    columns = range(targets.shape[1]) if column is None else [check_column(column, targets.shape[1])]

    def learned(y: Any, state: Any) -> Any:
        def turn(state: Any, row: Any) -> Any:
            (state, _), metrics = _update(learner, state, row[0], row[1][None], None)
            return state, metrics

        begun = _sealed(learner.init(observations.shape[1]), zero) if state is None else state
        return lax.scan(turn, _arrays(begun), (observations, y))

    if len(columns) == 1:
        after, metrics = learned(targets[:, columns[0]], state)
        return after, metrics
    given = [None if state is None else jax.tree.map(lambda leaf, at=at: leaf[at], state) for at in columns]
    found = [learned(targets[:, at], given[at]) for at in columns]
    return (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(after for after, _ in found)),
        jax.tree.map(lambda *leaves: jnp.stack(leaves, 1), *(metrics for _, metrics in found)),
    )


def _zero_of(given: Any) -> Any:
    """Return an int32 zero that the compiler can't know, from what is traced."""
    import jax

    return reduce(or_, map(_zero, filter(is_traced, jax.tree.leaves(given))))


def _sealed(tree: Any, zero: Any) -> Any:
    """Return a tree unchanged that the compiler can't know: of constants it would make other formulas."""
    import jax
    import jax.numpy as jnp

    def sealed(leaf: Any) -> Any:
        leaf = jnp.asarray(leaf)
        if leaf.dtype == jnp.float32:
            return seal(leaf, zero)
        return leaf + zero.astype(leaf.dtype) if jnp.issubdtype(leaf.dtype, jnp.integer) else leaf

    return jax.tree.map(sealed, tree)


def _zero(leaf: Any) -> Any:
    """Return a zero that follows from a traced leaf: a key, or data."""
    import jax
    import jax.numpy as jnp

    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if leaf.dtype != jnp.uint32:
        return zero_of(leaf)
    # Any one word may come up; these two together are one key of 2^64.
    words = leaf.ravel()
    return ((words[0] == _WORDS[0]) & (words[-1] == _WORDS[1])).astype(jnp.int32)


def _update(learner: Any, state: Any, observation: Any, target: Any, at: Any) -> Any:
    import jax

    found = learner.update(state, observation, target)
    # What the state began with decides the dtypes, as in the loops outside.
    after = jax.tree.map(lambda new, old: jax.numpy.asarray(new, old.dtype), found.state, state)
    return (after, at), found.metrics


def _arrays(tree: Any) -> Any:
    import jax

    return jax.tree.map(jax.numpy.asarray, tree)


def _steps(num_steps: int) -> Any:
    import jax.numpy as jnp

    return jnp.arange(num_steps, dtype=jnp.int32)
