"""A stream and a seed → blocks.

Blocks are made one ahead of the one in use, so that the device computes while the host hashes, writes or learns. The
length of a block changes no bit. Every block ends at a multiple of `CHECKPOINT_STEPS` at the latest, so that the
state there can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from alberta_data import host_keys, keys
from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.streams.base import Stream, check_steps
from alberta_data.xla import forked

BLOCK_STEPS = 2**16
"""Most steps of a block. Longer ones are no faster: the memory of their numbers goes back to the system each time."""
MAX_BLOCK_BYTES = 8 * 2**20
"""Most bytes of observations and targets that one block takes on the CPU."""


def block_length(stream: Any, device: Any = None) -> int:
    """Return the steps of a block: a power of two, at most `BLOCK_STEPS`, that keeps it within `MAX_BLOCK_BYTES`.

    Args:
        stream: its `feature_dim` decides.
        device: a jax device; an accelerator's own memory takes the place of the 8 MiB, a 64th of it.
    """
    room = MAX_BLOCK_BYTES
    if device is not None and device.platform != "cpu":
        room = int((device.memory_stats() or {}).get("bytes_limit", 64 * MAX_BLOCK_BYTES)) // 64
    rows = max(1, room // (4 * (stream.feature_dim + 1)))
    return min(BLOCK_STEPS, 1 << (rows.bit_length() - 1))


def check_block_steps(block_steps: int | None) -> None:
    """Check the length of a block.

    Raises:
        ArgumentError: not None and not a whole number of at least 1.
    """
    if block_steps is None:
        return
    if isinstance(block_steps, bool) or not isinstance(block_steps, (int, np.integer)) or block_steps < 1:
        raise ArgumentError(f"block_steps must be a whole number of at least 1, got {block_steps!r}")


def initial_state(stream: Any, seed_or_key: Any) -> Any:
    """Return the state before step 0.

    Args:
        stream: any stream that follows `ScanStream`.
        seed_or_key: a seed 0 … 2^32 − 1, or a threefry key.

    Raises:
        ArgumentError: a seed out of its range, a key of another implementation.
    """
    import jax

    if not isinstance(seed_or_key, (int, np.integer)):
        key = seed_or_key
    elif isinstance(stream, Stream) and stream.in_phases:
        # The two words alone: a typed key of our implementation costs the import of `jax.extend`.
        from alberta_data.streams import phases

        return phases.initial(stream, host_keys.key(int(seed_or_key)))
    else:
        key = keys.key(int(seed_or_key))
    # A count that begins as Python's 0 has the dtype that it will have after the first step.
    return jax.tree.map(jax.numpy.asarray, stream.init(key))


def blocks(
    stream: Any,
    seed_or_key: Any,
    steps: int,
    *,
    block_steps: int | None = None,
    start: int = 0,
    state: Any = None,
    hidden: bool = False,
    device: Any = None,
) -> Iterator[tuple[Block, Any]]:
    """Yield the steps `start` … `steps` of a stream as blocks, each with the stream's state after it.

    Args:
        stream: any stream that follows `ScanStream`; ours are made in four phases, others by a plain scan.
        seed_or_key: a seed 0 … 2^32 − 1, or a threefry key.
        steps: where to stop, at most 2^31 − 1.
        block_steps: most steps of a block, at most 2^17; by default what `block_length` gives.
        start: index of the first step; the state before it has to be given unless it is 0.
        state: the state before step `start`.
        hidden: put what the targets were made with (weights, scales, …) into the blocks' arrays too.
        device: the jax device to compute on; the CPU by default, also where there is a GPU, since frozen numbers are
            promised for it.

    Yields:
        `(block, state)`; the arrays of a block are read-only views of the device's memory.

    Raises:
        ArgumentError: a number out of its range, or a stream without hidden state asked for it.
    """
    import jax

    steps = check_steps(steps)
    if forked():
        raise UnavailableError(
            "jax had started before this process was forked, and cannot compute here: "
            "use multiprocessing's 'spawn', or start jax after the fork"
        )
    device = device if device is not None else jax.local_devices(backend="cpu")[0]
    check_block_steps(block_steps)
    length = block_length(stream, device) if block_steps is None else block_steps
    if not 0 <= start < steps:
        raise ArgumentError(f"start must be from 0 to steps − 1 = {steps - 1}, got {start}")
    if start > 0 and state is None:
        raise ArgumentError(f"start {start} needs the state before that step")
    capacity = min(int(length), CHECKPOINT_STEPS, _power_of_two_from(steps - start))
    make = _maker(stream, capacity, hidden, start)

    def run() -> Iterator[tuple[Block, Any]]:
        # The device is set for each piece of work alone: what the caller does between two blocks is its own affair.
        with jax.default_device(device):
            before = initial_state(stream, seed_or_key) if state is None else state
            before = jax.device_put(before, device)
        ahead = None
        for first, count in _cuts(start, steps, capacity):
            with jax.default_device(device):
                arrays, after = make(before, count)
            if ahead is not None:
                yield _to_host(*ahead)
            ahead = (first, count, arrays, after)
            before = after
        assert ahead is not None
        yield _to_host(*ahead)

    return run()


def _power_of_two_from(steps: int) -> int:
    return 1 << (steps - 1).bit_length()


def _cuts(start: int, stop: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield first step and length of each block; none crosses a multiple of `CHECKPOINT_STEPS`."""
    while start < stop:
        count = min(length, stop - start, CHECKPOINT_STEPS - start % CHECKPOINT_STEPS)
        yield start, count
        start += count


def _to_host(first: int, count: int, arrays: Mapping[str, Any], state: Any) -> tuple[Block, Any]:
    return Block(first, {name: np.asarray(array)[:count] for name, array in arrays.items()}), state


Maker = Callable[[Any, int], tuple[dict[str, Any], Any]]


def _maker(stream: Any, capacity: int, hidden: bool, start: int) -> Maker:
    """Return the function that makes one block from the state before it."""
    if isinstance(stream, Stream) and stream.in_phases:
        from alberta_data.streams import phases

        def make(state: Any, count: int) -> tuple[dict[str, Any], Any]:
            out = phases.block(stream, state, count, capacity, hidden=hidden)
            seen = out.seen if hidden else {}
            return {"observations": out.observations, "targets": out.targets, **seen}, out.state

        return make
    if hidden:
        raise ArgumentError("hidden state is known only of the streams defined here; this is one of your own")
    return _scan_maker(stream, capacity, start)


def _scan_maker(stream: Any, capacity: int, start: int) -> Maker:
    """Return the maker of a stream of the user's own: a loop over its `step`, one program for any number of steps."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def program(state: Any, first: Any, steps: Any) -> tuple[dict[str, Any], Any]:
        state = jax.tree.map(jnp.asarray, state)
        one, _ = jax.eval_shape(lambda s: stream.step(s, first), state)
        room = tuple(jnp.zeros((capacity, *part.shape), part.dtype) for part in (one.observation, one.target))

        def turn(index: Any, carry: Any) -> Any:
            state, rows = carry
            step, state = stream.step(state, first + index)
            parts = (step.observation, step.target)
            rows = tuple(
                lax.dynamic_update_index_in_dim(row, part, index, 0) for row, part in zip(rows, parts, strict=True)
            )
            return state, rows

        state, (observations, targets) = lax.fori_loop(0, steps, turn, (state, room))
        return {"observations": observations, "targets": targets.reshape(capacity, -1)}, state

    compiled = jax.jit(program)
    position = start

    def make(state: Any, count: int) -> tuple[dict[str, Any], Any]:
        nonlocal position
        made = compiled(state, np.int32(position), np.int32(count))
        position += count
        return made

    return make


def state_arrays(state: Any) -> dict[str, np.ndarray]:
    """Return a stream's state as path → array on the host; keys as their uint32 words.

    A path is the names of the fields that lead to the leaf, joined by `/`.
    """
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    return {_path(path): _leaf_array(leaf) for path, leaf in leaves}


def _path(path: Any) -> str:
    names = [str(getattr(entry, "name", getattr(entry, "key", getattr(entry, "idx", entry)))) for entry in path]
    return "/".join(names) or "state"


def _is_key(leaf: Any) -> bool:
    import jax
    import jax.numpy as jnp

    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _leaf_array(leaf: Any) -> np.ndarray:
    import jax

    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def state_from_arrays(stream: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return a stream's state from what `state_arrays` made of one.

    Raises:
        ArgumentError: names, shapes or dtypes are not those of this stream's state.
    """
    import jax

    template = initial_state(stream, 0)
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    if {_path(path) for path, _ in leaves} != set(arrays):
        raise ArgumentError(f"the state must have {sorted(_path(p) for p, _ in leaves)}, got {sorted(arrays)}")
    found = []
    for path, leaf in leaves:
        array, like = arrays[_path(path)], _leaf_array(leaf)
        if array.shape != like.shape or array.dtype != like.dtype:
            raise ArgumentError(
                f"{_path(path)} of the state must be {like.dtype} {like.shape}, got {array.dtype} {array.shape}"
            )
        value = jax.numpy.asarray(array)
        key_impl = jax.random.key_impl(leaf) if _is_key(leaf) else None
        found.append(value if key_impl is None else jax.random.wrap_key_data(value, impl=key_impl))
    return jax.tree_util.tree_unflatten(structure, found)
