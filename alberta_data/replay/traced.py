"""Learning inside somebody else's `jit`, `vmap` or `grad`: plain scans over `step` and `update`.

What is traced can't be looked at: a state that leaves the finite numbers is handed back as it is. On the CPU the
streams and learners of this package give the bits of the loops outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.exact import seal, zero_of
from alberta_data.replay.rows import check_column

# Any one word of a key may come up; these two together are one key of 2^64.
_UNLIKELY_KEY = np.array([0x6A09E667, 0xBB67AE85], np.uint32)
_DEEPEST = 4


def is_traced(*things: Any) -> bool:
    """Say whether there is a tracer of jax's in trees of arrays, or in the attributes of learners."""
    return next(_tracers(things), None) is not None


def _tracers(thing: Any, depth: int = 0) -> Iterator[Any]:
    import jax

    for leaf in jax.tree.leaves(thing):
        if isinstance(leaf, jax.core.Tracer):
            yield leaf
        elif depth < _DEEPEST and not isinstance(leaf, (jax.Array, np.ndarray, type)):
            yield from _tracers(list(getattr(leaf, "__dict__", {}).values()), depth + 1)


def refuse_recordings(**asked: Any) -> None:
    """Refuse what is recorded outside the compiled loop.

    Raises:
        ArgumentError: something is asked for.
    """
    for name, option in asked.items():
        if option is not None:
            raise ArgumentError(
                f"{name} must be left out under jit, vmap and grad, got {option!r:.80}: call the loop outside of them"
            )


def over_stream(learner: Any, stream: Any, num_steps: int, key: Any, state: Any) -> tuple[Any, Any]:
    """Return state and metrics after `num_steps` steps of a stream from a key or seed; see `run_learning_loop`."""
    import jax.numpy as jnp
    from jax import lax

    from alberta_data import generation

    def turn(at: Any, idx: Any) -> Any:
        step, at = stream.step(at, idx)
        return at, (step.observation, jnp.reshape(step.target, -1))

    begun = generation.initial_state(stream, key)
    _, (observations, targets) = lax.scan(turn, begun, jnp.arange(num_steps, dtype=jnp.int32))
    return over_rows(learner, observations, targets, state)


def over_rows(learner: Any, observations: Any, targets: Any, state: Any, column: int | None = None) -> tuple[Any, Any]:
    """Return state and metrics after all rows; see `learn_from_trajectory`.

    Raises:
        ArgumentError: no rows; the target column is not there.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    if not len(observations):
        raise ArgumentError("there must be at least one step to learn from, got none")
    observations, targets = jnp.asarray(observations, jnp.float32), jnp.asarray(targets, jnp.float32)
    targets = targets.reshape(len(observations), -1)
    # Of constants the compiler would make other formulas.
    hiding = reduce(or_, map(_zero, _tracers((observations, targets, state, learner))))
    columns = range(targets.shape[1]) if column is None else [check_column(column, targets.shape[1])]

    def turn(state: Any, row: Any) -> Any:
        found = learner.update(state, row[0], row[1][None])
        # What the state began with decides the dtypes, as in the loops outside.
        after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), found.state, state)
        return after, found.metrics

    def learned(at: int, state: Any) -> Any:
        begun = _hidden(learner.init(observations.shape[1]), hiding) if state is None else state
        return lax.scan(turn, jax.tree.map(jnp.asarray, begun), (observations, targets[:, at]))

    if len(columns) == 1:
        after, metrics = learned(columns[0], state)
        return after, metrics
    given = [None if state is None else jax.tree.map(lambda leaf, at=at: leaf[at], state) for at in columns]
    found = [learned(at, one) for at, one in zip(columns, given, strict=True)]
    return (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(after for after, _ in found)),
        jax.tree.map(lambda *leaves: jnp.stack(leaves, 1), *(metrics for _, metrics in found)),
    )


def _hidden(tree: Any, zero: Any) -> Any:
    """Return a tree unchanged, of which the compiler can't know the numbers."""
    import jax
    import jax.numpy as jnp

    def hidden(leaf: Any) -> Any:
        leaf = jnp.asarray(leaf)
        if leaf.dtype == jnp.float32:
            return seal(leaf, zero)
        return leaf + zero.astype(leaf.dtype) if jnp.issubdtype(leaf.dtype, jnp.integer) else leaf

    return jax.tree.map(hidden, tree)


def _zero(tracer: Any) -> Any:
    """Return an int32 zero that follows from a tracer of any dtype, a key, data or part of a state."""
    import jax
    import jax.numpy as jnp

    words = jax.random.key_data(tracer) if jnp.issubdtype(tracer.dtype, jax.dtypes.prng_key) else tracer
    if not words.size:
        return jnp.int32(0)
    words = words.reshape(-1)
    if words.dtype == jnp.uint32 and words.size > 1:
        return ((words[0] == _UNLIKELY_KEY[0]) & (words[-1] == _UNLIKELY_KEY[1])).astype(jnp.int32)
    return zero_of(words[0].astype(jnp.float32))
