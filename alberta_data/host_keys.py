"""Threefry keys on the host: `jax.random`'s bits in NumPy, without jax.

Keys are uint32 arrays whose last axis holds the two words; every function works on one key or on many at once, so a
block of draws costs a few passes over arrays. The layout is jax's partitionable one (`streams.md`, "Notation"): word
`i` of a draw is `a ^ b` with `(a, b) = threefry2x32(key, (0, i))`, and `split(key, n)[i]` is `(a, b)`.

The numbers equal those of `jax.random.split`, `fold_in`, `bits`, `uniform` and `randint` (int32, float32) bit for bit.
"""

from __future__ import annotations

from math import prod

import numpy as np

from alberta_data import keys as keys_of_jax

_ONE = np.float32(1.0)


def key(seed: int) -> np.ndarray:
    """Return the key of a seed, uint32 `(2,)`.

    Raises:
        ArgumentError: the seed does not fit in 32 bits, so that another seed would give the same key.
    """
    return np.array([0, keys_of_jax.check_seed(seed)], np.uint32)


def threefry2x32(keys: np.ndarray, high: np.ndarray | int, low: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """Return the two output words of the Threefry-2x32 block function, 20 rounds (Salmon et al., 2011).

    Args:
        keys: uint32 `(..., 2)`.
        high: first counter word, uint32, broadcast against `keys[..., 0]`.
        low: second counter word, likewise.
    """
    # Arrays, not scalars: only arrays wrap without a warning.
    words = keys_of_jax.Words(np.atleast_1d(keys[..., 0]), np.atleast_1d(keys[..., 1]))
    counter = np.asarray(high, np.uint32), np.asarray(low, np.uint32)
    return keys_of_jax.cipher(words, *counter, keys_of_jax.IN_NUMPY)


def _counted(keys: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the words for the counters `(0, 0) … (0, n - 1)`, each `(..., n)`."""
    return threefry2x32(keys[..., None, :], np.zeros(n, np.uint32), np.arange(n, dtype=np.uint32))


def split(keys: np.ndarray, n: int = 2) -> np.ndarray:
    """Return `n` new keys for each key, `(..., n, 2)`."""
    return np.stack(_counted(keys, n), axis=-1)


def fold_in(keys: np.ndarray, data: int) -> np.ndarray:
    """Return each key with a number below 2^32 folded in, `(..., 2)`."""
    zero, word = np.zeros((1,), np.uint32), np.array([data], np.uint32)
    return np.stack(threefry2x32(keys[..., None, :], zero, word), axis=-1)[..., 0, :]


def bits(keys: np.ndarray, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Return uint32 words, `(..., *shape)`."""
    a, b = _counted(keys, prod(shape))
    return (a ^ b).reshape(keys.shape[:-1] + shape)


def uniform(
    keys: np.ndarray, shape: tuple[int, ...] = (), low: float | np.ndarray = 0.0, high: float | np.ndarray = 1.0
) -> np.ndarray:
    """Return float32 numbers from `[low, high)`, `(..., *shape)`; the bounds broadcast against `shape`."""
    lo, hi = np.asarray(low, np.float32), np.asarray(high, np.float32)
    unit = ((bits(keys, shape) >> np.uint32(9)) | np.uint32(0x3F800000)).view(np.float32) - _ONE
    return np.maximum(lo, _fused_multiply_add(unit, hi - lo, lo))


def _fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return `a · b + c` in float32, rounded once, as compiled code does it on the processors we promise bits for."""
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 + 24 bits
    term = c.astype(np.float64)
    total = product + term
    # What the sum lost, exactly (Knuth's two-sum); with it the sum is rounded to odd, so that the second rounding, to
    # float32, sees on which side of a tie the true value lies (Boldo & Melquiond, 2008).
    back = total - product
    lost = (product - (total - back)) + (term - back)
    even = (np.asarray(total).view(np.int64) & 1) == 0
    odd = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost != 0) & even, odd, total).astype(np.float32)


def randint(keys: np.ndarray, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    """Return int32 numbers from `[low, high)`, `(..., *shape)`; both bounds must fit in int32, `low < high`."""
    span = np.uint32(high - low)
    half = (1 << 16) % int(span)
    # The square is taken modulo 2^32 first, as there.
    multiplier = np.uint32((half * half & 0xFFFFFFFF) % int(span))
    pair = split(keys, 2)
    offset = bits(pair[..., 1, :], shape) % span
    if multiplier:  # 0 for small powers of two: then the upper word is not needed
        offset = ((bits(pair[..., 0, :], shape) % span) * multiplier + offset) % span
    return (np.uint32(low & 0xFFFFFFFF) + np.atleast_1d(offset)).reshape(offset.shape).view(np.int32)
