"""The four phases put together in two ways: one step, and a block of steps. Their bits agree.

Both are compiled once for each stream (equal parameters compare equal) and kept. A block's program is one for any
number of steps up to its capacity: the chain and the drift are loops whose trip count is an argument, since a loop
compiled for one step would round differently from one for a thousand.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from alberta_data.blocks import TimeStep
from alberta_data.exact import zero_of
from alberta_data.keys import Words, apart, key_like, split, together, words_of


class BlockOutput(NamedTuple):
    """What a block's program returns; rows from `steps` on are not to be used.

    Attributes:
        observations: float32 `(capacity, feature_dim)`.
        targets: float32 `(capacity, 1)`.
        state: the state after `steps` steps.
        seen: what `emit` saw of the hidden state at each step, or None when not asked for.
    """

    observations: Any
    targets: Any
    state: Any
    seen: Any


def _barrier(tree: Any) -> Any:
    """Keep the compiler from merging constants across phases."""
    from jax import lax

    return lax.optimization_barrier(tree)


def _open(stream: Any, state: Any) -> Any:
    """Return the state with its key as two words and its count as int32, as the phases see it."""
    import jax.numpy as jnp

    state = stream.unwrap(state)
    return state._replace(key=words_of(state.key), step_count=jnp.asarray(state.step_count, jnp.int32))


def _close(stream: Any, state: Any, like: Any) -> Any:
    """Undo `_open`; the key takes the form of `like`, so that a scan may begin with a state made by hand."""
    return stream.wrap(state._replace(key=key_like(state.key, like)))


def initial(stream: Any, key: Any) -> Any:
    """Return the state before step 0 from a key, typed or raw; the state's key takes that form."""
    return _initial_program(stream)(key)


@lru_cache(maxsize=64)
def _initial_program(stream: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def program(key: Any) -> Any:
        state = stream.initial(words_of(key))
        return _close(stream, state._replace(step_count=jnp.zeros((), jnp.int32)), key)

    return jax.jit(program)


def step(stream: Any, state: Any) -> tuple[TimeStep, Any]:
    """Return one step and the state after it."""
    return _step_program(stream)(state)


@lru_cache(maxsize=64)
def _step_program(stream: Any) -> Any:
    import jax

    def program(state: Any) -> tuple[TimeStep, Any]:
        given = stream.unwrap(state).key
        state = _open(stream, state)
        zero = zero_of(state.step_count)
        drawn = _barrier(jax.tree.map(lambda normal: normal.numbers(), stream.draw(state.key)))
        after, seen = stream.drift(state, drawn, state.key, zero)
        seen = _barrier(seen)
        observation, target = stream.emit(seen, drawn, zero)
        after = after._replace(key=split(state.key, 0), step_count=state.step_count + 1)
        return TimeStep(observation, target), _close(stream, after, given)

    return jax.jit(program)


def block(stream: Any, state: Any, steps: int, capacity: int, *, hidden: bool = False) -> BlockOutput:
    """Return the next `steps` steps of a stream, in arrays of `capacity` rows.

    Two programs, not one: what the first hands over is then in memory, where jax 0.10 would otherwise make every
    number twice, once for the observations and once for the targets.

    Args:
        stream: one of the streams defined here.
        state: what `init`, `step` or a block before returned.
        steps: how many, 1 … `capacity`.
        capacity: rows of the arrays; one program is compiled for each.
        hidden: also return what `emit` saw of the hidden state.
    """
    count = np.int32(steps)
    key, step_keys, filled = _numbers_program(stream, capacity)(stream.unwrap(state).key, count)
    return _finish_program(stream, capacity, hidden)(state, key, step_keys, filled, count)


@lru_cache(maxsize=64)
def _numbers_program(stream: Any, capacity: int) -> Any:
    """Return the compiled chain and draw: `(key, steps) -> (key after, key of each step, numbers of all steps)`."""
    import jax

    def program(key: Any, steps: Any) -> tuple[Words, Words, Any]:
        after, step_keys = _chain(words_of(key), steps, capacity)
        return after, step_keys, together(jax.tree.leaves(stream.draw(step_keys)))

    return jax.jit(program)


def _drawn(stream: Any, step_keys: Words, filled: Any) -> Any:
    """Return the numbers that `_numbers_program` made, in the form of what `draw` promises."""
    import jax

    promises, tree = jax.tree.flatten(stream.draw(step_keys))
    return jax.tree.unflatten(tree, apart(filled, promises))


@lru_cache(maxsize=64)
def _finish_program(stream: Any, capacity: int, hidden: bool) -> Any:
    """Return the compiled drift and emit."""
    import jax
    import jax.numpy as jnp

    def program(state: Any, key: Words, step_keys: Words, filled: Any, steps: Any) -> BlockOutput:
        given = stream.unwrap(state).key
        state = _open(stream, state)
        zero = zero_of(state.step_count)
        drawn = _drawn(stream, step_keys, filled)
        if stream.recursive:
            after, seen = _drift(stream, state, drawn, step_keys, steps, capacity, zero)
        else:
            counts = state.step_count + jnp.arange(capacity, dtype=jnp.int32)
            after, seen = stream.drift(state._replace(step_count=counts), drawn, step_keys, zero)
        observations, targets = stream.emit(_barrier(seen), drawn, zero)
        after = after._replace(key=key, step_count=state.step_count + steps)
        return BlockOutput(observations, targets, _close(stream, after, given), seen if hidden else None)

    return jax.jit(program)


def _chain(key: Words, steps: Any, capacity: int) -> tuple[Words, Words]:
    """Return the key after `steps` steps, and the key of each."""
    import jax.numpy as jnp
    from jax import lax

    room = Words(*(jnp.zeros(capacity, jnp.uint32) for _ in key))

    def turn(index: Any, carry: Any) -> Any:
        key, rows = carry
        rows = Words(
            *(lax.dynamic_update_index_in_dim(row, word, index, 0) for row, word in zip(rows, key, strict=True))
        )
        return split(key, 0), rows

    return lax.fori_loop(0, steps, turn, (key, room))


def _drift(stream: Any, state: Any, drawn: Any, keys: Words, steps: Any, capacity: int, zero: Any) -> tuple[Any, Any]:
    """Run the recursion of `stream` over the steps of a block; return the state after it and what each step saw."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def at(tree: Any, index: Any) -> Any:
        return jax.tree.map(lambda rows: lax.dynamic_index_in_dim(rows, index, 0, keepdims=False), tree)

    _, one = jax.eval_shape(stream.drift, state, at(drawn, 0), at(keys, 0), zero)
    room = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), one)

    def turn(index: Any, carry: Any) -> Any:
        state, rows = carry
        after, seen = stream.drift(state, at(drawn, index), at(keys, index), zero)
        rows = jax.tree.map(lambda row, leaf: lax.dynamic_update_index_in_dim(row, leaf, index, 0), rows, seen)
        return after._replace(step_count=state.step_count + 1), rows

    return lax.fori_loop(0, steps, turn, (state, room))
