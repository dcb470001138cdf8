"""The numbers of a chain of keys, drawn a block at a time, ahead of the calls that use them.

A published policy keeps a key: at each call `rng, k = split(rng, 2)`, and its number is drawn from `k`. Only the chain
of keys is sequential; it is one small compiled scan (0.04 µs a call), everything else is NumPy over the whole block.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from alberta_data import host_keys, keys
from alberta_data.xla import forked

CALLS_AHEAD = 4096
"""Calls drawn at once."""


@lru_cache(maxsize=8)
def _chain_program(n: int) -> Callable[[np.ndarray], Any]:
    """Return the compiled scan `key → the keys before calls 0 … n` (uint32 `(n + 1, 2)`)."""
    import jax
    import jax.numpy as jnp

    def next_key(k: Any, _: None) -> tuple[Any, Any]:
        return keys.split(k, 0), k

    def run(words: Any) -> Any:
        last, before = jax.lax.scan(next_key, keys.Words(words[0], words[1]), None, length=n)
        return jnp.stack([jnp.append(b, x) for b, x in zip(before, last, strict=True)], axis=-1)

    return jax.jit(run)


def chain(words: np.ndarray, n: int) -> np.ndarray:
    """Return the keys before calls 0 … n, uint32 `(n + 1, 2)`."""
    if forked():
        return chain_without_jax(words, n)
    import jax

    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return np.asarray(_chain_program(n)(words))


def chain_without_jax(words: np.ndarray, n: int) -> np.ndarray:
    """Return what `chain` returns, about a hundred times slower."""
    found, zero = [keys.Words(np.uint32(words[0]), np.uint32(words[1]))], np.uint32(0)
    with np.errstate(over="ignore"):  # scalars warn where arrays wrap
        for _ in range(n):
            found.append(keys.Words(*keys.cipher(found[-1], zero, zero, keys.IN_NUMPY)))
    return np.array(found, np.uint32)


class Ahead:
    """Numbers of a chain of keys, drawn ahead of the calls that use them.

    Args:
        words: the key before the first call, uint32 `(2,)`.
        draw: keys `(n, 2)` → the number of each call, `(n, ...)`.
        calls: how many calls to draw at once.
    """

    def __init__(self, words: np.ndarray, draw: Callable[[np.ndarray], np.ndarray], calls: int = CALLS_AHEAD):
        self._draw, self._calls = draw, calls
        self.restore(words)

    def restore(self, words: np.ndarray) -> None:
        """Go on from this key."""
        self._keys = np.asarray(words, np.uint32).reshape(1, 2)
        self._numbers = self._draw(self._keys[:0])
        self._at = 0

    @property
    def words(self) -> np.ndarray:
        """The key before the next call, uint32 `(2,)`."""
        return self._keys[self._at].copy()

    def _refill(self) -> None:
        self._keys = chain(self._keys[-1], self._calls)
        subkeys = np.stack(host_keys.threefry2x32(self._keys[:-1], 0, 1), axis=-1)
        self._numbers = self._draw(subkeys)
        self._at = 0

    def take(self, n: int) -> np.ndarray:
        """Return the numbers of the next `n` calls."""
        pieces = [self._numbers[self._at : self._at + n]]
        self._at += len(pieces[0])
        missing = n - len(pieces[0])
        while missing:
            self._refill()
            pieces.append(self._numbers[:missing])
            self._at = len(pieces[-1])
            missing -= self._at
        return np.concatenate(pieces)
