"""Threefry keys: the bits of `jax.random`, written out so that the CPU's vector units make them.

`jax.random` rolls the twenty rounds of threefry2x32 into a loop, which keeps them out of the vector registers. The
same rounds written out in uint32 arithmetic give the same words several times faster. Two faces of one
implementation:

- keys that `jax.random` takes: `key(seed)`, `as_key(any threefry key)`; `jax.random.split`, `normal`, … work on them;
- `Words`, a pair of uint32 arrays of any shape, for drawing the numbers of many steps at once: `split`, `normal`,
  `uniform`, `randint`, bit for bit what `jax.random` draws from each key in the partitionable layout.

Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3". jax is imported inside each
function: modules that only describe a stream import this one without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.exact import fused

PRNG = "threefry2x32/partitionable"
MAX_SEED = 2**32 - 1

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_TAG = "alberta-threefry2x32"
_LANES = 8
_PARITY = np.uint32(0x1BD11BDA)


class Words(NamedTuple):
    """The two uint32 words of a key, or of one key a step (each of the steps' shape)."""

    high: Any
    low: Any


def check_seed(seed: int) -> int:
    """Return `seed` as an int.

    Raises:
        ArgumentError: outside 0 … 2^32 − 1. `jax.random.key` keeps 32 bits, so −1 and 2^32 − 1 would be one stream.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= int(seed) <= MAX_SEED:
        raise ArgumentError(f"seed must be a whole number from 0 to {MAX_SEED}, got {seed!r}")
    return int(seed)


class Arithmetic(NamedTuple):
    """The operations of the cipher: NumPy's, or jax's own, which are traced several times faster than operators."""

    add: Any
    xor: Any
    either: Any
    left: Any
    right: Any


IN_NUMPY = Arithmetic(np.add, np.bitwise_xor, np.bitwise_or, np.left_shift, np.right_shift)


def cipher(key: Words, x0: Any, x1: Any, by: Arithmetic) -> tuple[Any, Any]:
    """Return the two output words of the block cipher for the counter `(x0, x1)`; uint32, for jax of one shape."""
    schedule = (key.high, key.low, by.xor(by.xor(key.high, key.low), _PARITY))
    x0 = by.add(x0, schedule[0])
    x1 = by.add(x1, schedule[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = by.add(x0, x1)
            x1 = by.either(by.left(x1, np.uint32(distance)), by.right(x1, np.uint32(32 - distance)))
            x1 = by.xor(x0, x1)
        x0 = by.add(x0, schedule[(group + 1) % 3])
        x1 = by.add(by.add(x1, schedule[(group + 2) % 3]), np.uint32(group + 1))
    return x0, x1


@lru_cache(maxsize=1)
def _cipher_of_jax() -> Any:
    import jax
    from jax import lax

    by = Arithmetic(lax.add, lax.bitwise_xor, lax.bitwise_or, lax.shift_left, lax.shift_right_logical)

    def program(key: Words, x0: Any, x1: Any) -> tuple[Any, Any]:
        high, low, x0, x1 = jax.numpy.broadcast_arrays(*key, x0, x1)
        return cipher(Words(high, low), x0, x1, by)

    return jax.jit(program)


def threefry2x32(key: Words, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Return what `cipher` does, in jax and broadcast together; traced once for each shape, not at each call."""
    words: tuple[Any, Any] = _cipher_of_jax()(key, x0, x1)
    return words


def split(key: Words, index: int) -> Words:
    """Return result `index` of `jax.random.split(key, n)`, which does not depend on n."""
    zero = key.high ^ key.high
    return Words(*threefry2x32(key, zero, zero + np.uint32(index)))


def bits(key: Words, size: int) -> Any:
    """Return `size` random uint32 per key, shape `(*steps, size)`."""
    import jax.numpy as jnp

    counters = jnp.arange(size, dtype=jnp.uint32).reshape((1,) * key.high.ndim + (size,))
    a, b = threefry2x32(_columns(key), jnp.zeros_like(counters), counters)
    return a ^ b


def _unit(words: Any) -> Any:
    """Return float32 in [0, 1) from the upper 23 bits of each word."""
    import jax.numpy as jnp
    from jax import lax

    one_to_two = lax.bitcast_convert_type((words >> np.uint32(9)) | np.uint32(0x3F800000), jnp.float32)
    return one_to_two - np.float32(1)


def scaled_root2(scale: float) -> np.float32:
    """Return the one constant of `scale · N(key)`: float32(√2) · float32(scale), rounded once."""
    return np.float32(np.float32(math.sqrt(2)) * np.float32(scale))


def normal(key: Words, size: int, scale: float = 1.0) -> Any:
    """Return `scale · jax.random.normal(key, (size,))` per key, float32 `(*steps, size)`.

    The constants √2 and `scale` are merged into one product, as XLA merges them in the published definitions.
    """
    return scaled_root2(scale) * _unscaled(bits(key, size))


def _unscaled(words: Any) -> Any:
    """Return normal numbers of standard deviation 1/√2 from random words."""
    from jax import lax

    low = np.nextafter(np.float32(-1), np.float32(0), dtype=np.float32)
    # (1 − low) rounds to 2, and a product by 2 is exact: no seal needed before `low` is added.
    return lax.erf_inv(lax.max(low, _unit(words) * np.float32(2) + low))


@dataclass(frozen=True)
class Normal:
    """The promise of `normal(key, size, scale)`: what a stream's `draw` returns, made by whoever runs the stream.

    Attributes:
        key: one key, or one a step.
        size: numbers per key.
        scale: their standard deviation.
    """

    key: Words
    size: int
    scale: float = 1.0

    def numbers(self) -> Any:
        """Return the numbers, float32 `(*steps, size)`."""
        return normal(self.key, self.size, self.scale)


def together(promises: Sequence[Normal]) -> list[Any]:
    """Return the numbers of several promises in as few arrays as serve; `apart` cuts them.

    Those of more than one number a key lie side by side in the first array, filled up to whole vector registers: what
    does not fill one is made a number at a time, and five of those cost more than eight together. Those of one number
    have arrays of their own, with the steps along the vector.
    """
    wide = [promise for promise in promises if promise.size > 1]
    single = [promise.numbers() for promise in promises if promise.size == 1]
    return [_side_by_side(wide), *single] if wide else single


def apart(arrays: Sequence[Any], promises: Sequence[Normal]) -> list[Any]:
    """Return each promise's numbers, float32 `(*steps, size)`, from what `together` made of the same promises."""
    found, first = [], 0
    shared = any(promise.size > 1 for promise in promises)
    single = iter(arrays[1:] if shared else arrays)
    for promise in promises:
        if promise.size == 1:
            found.append(next(single))
        else:
            found.append(arrays[0][..., first : first + promise.size])
            first += promise.size
    return found


def _side_by_side(promises: Sequence[Normal]) -> Any:
    """Return the numbers of promises one after another, `(*steps, width)`: every column has its key, counter, scale."""
    import jax.numpy as jnp

    stops = np.cumsum([promise.size for promise in promises]).astype(np.uint32)
    width = -(-int(stops[-1]) // _LANES) * _LANES
    column = jnp.arange(width, dtype=jnp.uint32).reshape((1,) * promises[0].key.high.ndim + (width,))
    key, counter, scale = Words(column, column), column, column.astype(jnp.float32)
    for promise, stop in reversed(list(zip(promises, stops, strict=True))):
        # The columns from `stop` on are those of the promises after it, or mean nothing.
        here = (column < stop) | (stop == stops[-1])
        mine = _columns(promise.key)
        key = Words(*(jnp.where(here, ours, other) for ours, other in zip(mine, key, strict=True)))
        counter = jnp.where(here, column - (stop - np.uint32(promise.size)), counter)
        scale = jnp.where(here, scaled_root2(promise.scale), scale)
    a, b = threefry2x32(key, jnp.zeros_like(counter), counter)
    return scale * _unscaled(a ^ b)


def _columns(key: Words) -> Words:
    """Return a key, or one a step, with a last axis for the numbers of each."""
    return Words(key.high[..., None], key.low[..., None])


def uniform(key: Words, size: int, low: float, high: float) -> Any:
    """Return `jax.random.uniform(key, (size,), minval=low, maxval=high)` per key, float32 `(*steps, size)`.

    The scaling to the range is one fused multiply-add, as XLA compiles it in the published definitions.
    """
    from jax import lax

    low32, high32 = np.float32(low), np.float32(high)
    return lax.max(low32, fused(_unit(bits(key, size)), np.float32(high32 - low32), low32))


def randint(key: Words, low: int, high: int) -> Any:
    """Return `jax.random.randint(key, (), low, high, int32)` per key, int32 of the steps' shape."""
    import jax.numpy as jnp

    span = high - low
    # The square wraps at 32 bits, as it does in jax.random for spans above 2^16.
    multiplier = np.uint32(((2**16 % span) ** 2 % 2**32) % span)
    upper, lower = (bits(split(key, index), 1)[..., 0] for index in (0, 1))
    divisor = np.uint32(span)
    offset = ((upper % divisor) * multiplier + lower % divisor) % divisor
    return jnp.int32(low) + offset.astype(jnp.int32)


def _seeded(seed: Any) -> Any:
    import jax.numpy as jnp

    seed = jnp.asarray(seed)
    upper = (seed >> 32).astype(jnp.uint32) if seed.dtype.itemsize == 8 else jnp.zeros((), jnp.uint32)
    return jnp.stack([upper, seed.astype(jnp.uint32)])


def _counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    import jax.numpy as jnp

    index = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return jnp.asarray((index >> np.uint64(32)).astype(np.uint32)), jnp.asarray(index.astype(np.uint32))


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    import jax.numpy as jnp

    return jnp.stack(threefry2x32(Words(key[0], key[1]), *_counters(shape)), axis=-1)


def _fold_in(key: Any, data: Any) -> Any:
    import jax.numpy as jnp

    word = _seeded(data)
    return jnp.stack(threefry2x32(Words(key[0], key[1]), word[0], word[1]))


def _random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    import jax.numpy as jnp

    a, b = threefry2x32(Words(key[0], key[1]), *_counters(shape))
    if width == 64:
        return (a.astype(jnp.uint64) << 32) | b.astype(jnp.uint64)
    return (a ^ b).astype(jnp.dtype(f"uint{width}"))


@lru_cache(maxsize=1)
def implementation() -> Any:
    """Return this implementation, as `jax.random` knows it; registered with jax on the first call."""
    from jax.extend.random import define_prng_impl

    # Its functions lie in this module, so that keys can be pickled.
    return define_prng_impl(
        key_shape=(2,), seed=_seeded, split=_split, random_bits=_random_bits, fold_in=_fold_in,
        name="alberta_threefry2x32", tag=_TAG,
    )  # fmt: skip


def key(seed: int) -> Any:
    """Return `jax.random.key(seed)`'s words as a key of this implementation, a typed scalar key array.

    Raises:
        ArgumentError: `seed` is not a whole number from 0 to 2^32 − 1.
    """
    import jax

    words = np.array([0, check_seed(seed)], np.uint32)
    return jax.random.wrap_key_data(jax.numpy.asarray(words), impl=implementation())


def as_key(any_key: Any) -> Any:
    """Return a threefry key, typed or raw, as a typed key of this implementation with the same words.

    Raises:
        ArgumentError: the key is of another implementation (`rbg`, …), or no key at all.
    """
    import jax

    return jax.random.wrap_key_data(_data_of(any_key), impl=implementation())


def words_of(any_key: Any) -> Words:
    """Return the two words of a threefry key, typed or raw, or of an array of them.

    Raises:
        ArgumentError: see `as_key`.
    """
    data = _data_of(any_key)
    return Words(data[..., 0], data[..., 1])


def _data_of(any_key: Any) -> Any:
    import jax
    import jax.numpy as jnp

    if hasattr(any_key, "dtype") and jnp.issubdtype(any_key.dtype, jax.dtypes.prng_key):
        name = str(jax.random.key_impl(any_key))
        if name not in ("threefry2x32", _TAG):
            raise ArgumentError(f"a key must be threefry2x32, got {name}: make it with impl='threefry2x32'")
        words = jax.random.key_data(any_key)
    else:
        try:
            words = jnp.asarray(any_key)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"a key must be threefry2x32, got {any_key!r:.80}: make it with jax.random.key(seed)"
            ) from None
    if words.shape[-1:] != (2,) or words.dtype != jnp.uint32:
        raise ArgumentError(
            f"a key must be threefry2x32 (two uint32 words), got {words.dtype} of shape {words.shape}: "
            "make it with jax.random.key(seed, impl='threefry2x32')"
        )
    return words


def key_like(words: Words, like: Any) -> Any:
    """Return the key with these words in the form of `like`: raw, or typed of its implementation."""
    import jax
    import jax.numpy as jnp

    data = jnp.stack(words, axis=-1)
    if not jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return data
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like))
