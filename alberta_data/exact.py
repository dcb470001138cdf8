"""Arithmetic whose bits do not depend on what it is compiled into.

A compiler may round one formula in several ways: a product and the sum it goes into become one fused multiply-add in
a scan and not in a block; a `sum` has an order of its own in each shape. These functions leave it no choice, so that a
step alone, in a block of any length, and as one lane of a grid gives the same float32.

jax is imported inside each function: modules that only describe parameters import this one without it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

# Partial sums of `sum_features`: enough to hide the latency of an addition and to fill one vector register.
PARTIALS = 4
# Above this many rows of partials the sum is a loop; below, written out. The order is the same. Longer texts make jax
# 0.10 work out the terms of a grid again and again: a hundred times as long at 64 rows, half as long at 32.
_WRITTEN_OUT = 32
_ROWS_A_TURN = 16
# A NaN that no arithmetic makes.
_NEVER = 0x7FABCDEF


def zero_of(*values: Any) -> Any:
    """Return an int32 zero that the compiler can't know to be zero, as long as it doesn't know every value.

    Args:
        *values: of which some may be constants of a program, not all: step counts (any integer ≥ 0) or float32 data.
            Of arrays the first element counts.
    """
    import jax.numpy as jnp
    from jax import lax

    found = []
    for value in values:
        value = jnp.asarray(value)
        first = value if value.ndim == 0 else value.reshape(-1)[0]
        if jnp.issubdtype(first.dtype, jnp.integer):
            found.append(jnp.minimum(first, 0).astype(jnp.int32))
        else:
            found.append((lax.bitcast_convert_type(first, jnp.int32) == _NEVER).astype(jnp.int32))
    zero = found[0]
    for other in found[1:]:
        zero = zero | other
    return zero


def seal(product: Any, zero: Any) -> Any:
    """Return `product` unchanged, rounded to float32 before anything is added to it.

    Every product that an addition or a subtraction consumes goes through here: the compiler can't fuse across bits
    that may change. (A barrier does not stop it on jax 0.10; this costs next to nothing.)

    Args:
        product: float32, any shape.
        zero: a run-time int32 zero, scalar; see `zero_of`. A literal 0 would be folded away.
    """
    return _sealing()(product, zero)


@cache
def _sealing() -> Any:
    """Return `seal` as jax knows it: bits have no derivative, and what is sealed has its own."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    @jax.custom_jvp
    def sealed(product: Any, zero: Any) -> Any:
        bits = lax.bitcast_convert_type(product, jnp.int32)
        return lax.bitcast_convert_type(jnp.bitwise_xor(bits, zero), jnp.float32)

    @sealed.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return sealed(*primals), tangents[0]

    return sealed


def _bits_of(x: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    return lax.bitcast_convert_type(x, jnp.int32)


def fused(a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c rounded once, as one fused multiply-add would, whatever the compiler makes of it.

    For definitions whose published numbers came from a fused multiply-add. Made of sums and products that are exact,
    so it does not matter which of those are fused: the halves of a and b have 12 bits each (Dekker 1971), and the
    rounding to odd before the last sum keeps that sum from rounding twice (Boldo, Melquiond 2008).

    Args:
        a: float32, any shape.
        b: float32, broadcast with `a`.
        c: float32, broadcast with `a`. No intermediate may leave the normal float32 range.
    """
    import jax.numpy as jnp
    from jax import lax

    def upper_half(x: Any) -> Any:
        return lax.bitcast_convert_type(_bits_of(x) & -4096, jnp.float32)

    def two_sum(x: Any, y: Any) -> tuple[Any, Any]:
        # Without the barriers XLA writes the whole expression out anew at each use, and compiles for minutes.
        total = lax.optimization_barrier(x + y)
        of_y = lax.optimization_barrier(total - x)
        return total, lax.optimization_barrier((x - (total - of_y)) + (y - of_y))

    a, b, c = jnp.broadcast_arrays(jnp.float32(a), jnp.float32(b), jnp.float32(c))
    a1, b1 = upper_half(a), upper_half(b)
    a2, b2 = a - a1, b - b1
    # Four exact products, added from the largest; what each addition loses is kept.
    product, lost1 = two_sum(a1 * b1, a1 * b2)
    product, lost2 = two_sum(product, a2 * b1)
    product, lost3 = two_sum(product, a2 * b2)
    rest = (lost1 + lost2) + lost3
    total, lost = two_sum(product, c)
    low, beyond = two_sum(lost, rest)
    even = (_bits_of(low) & 1) == 0
    toward = jnp.where((beyond > 0) == (low > 0), 1, -1)
    odd = lax.bitcast_convert_type(_bits_of(low) + toward, jnp.float32)
    return total + jnp.where((beyond != 0) & even, odd, low)


def exp(x: Any, zero: Any) -> Any:
    """Return e^x to within 1.1 ulp, in the same bits on every release of the compiler.

    XLA's own `exp` is not: jaxlib 0.10 and 0.12 differ by an ulp in two of 100,000 numbers. Cody and Waite's reduction,
    then the polynomial of Cephes (Moshier) with its terms in pairs, which shortens the way through it.

    Args:
        x: float32, any shape; taken as −87.3 or 87.3 beyond these, so the result is a finite normal number, or NaN.
        zero: see `seal`.
    """
    import jax.numpy as jnp
    from jax import lax

    def scaled(a: Any, b: Any) -> Any:
        return seal(a * b, zero)

    x = jnp.minimum(jnp.maximum(x, np.float32(-87.3)), np.float32(87.3))
    n = jnp.floor(scaled(x, np.float32(1.44269504)) + np.float32(0.5))
    # The first part of ln 2 has 9 bits: its multiples are exact, fused or not.
    r = (x - n * np.float32(0.693359375)) - scaled(n, np.float32(-2.12194440e-4))
    square = r * r
    low = np.float32(0.5) + scaled(r, np.float32(1.6666665459e-1))
    middle = np.float32(4.1665795894e-2) + scaled(r, np.float32(8.3334519073e-3))
    high = np.float32(1.3981999507e-3) + scaled(r, np.float32(1.9875691500e-4))
    tail = low + (scaled(square, middle) + scaled(square * square, high))
    near_one = np.float32(1.0) + (r + scaled(square, tail))
    # Times 2^n, written as a division: the compiler takes multiplications for cheap and would work all of this out
    # anew for every use.
    # 1.5 · 2^23 + 127 − n is exact and ends in the bits of 127 − n; a conversion would mind NaN and the ends of int32.
    inverse = lax.bitcast_convert_type(_bits_of(np.float32(12583039) - n) << 23, jnp.float32)
    return near_one / inverse


def exp_fused(x: Any) -> Any:
    """Return e^x as jaxlib 0.10 computes it where everything that can be fused is, bit for bit, on every release.

    For definitions whose published numbers came from there; many times the work of `exp`. The polynomial is that of
    Cephes (Moshier), by Horner.

    Args:
        x: float32, any shape, within ±87.
    """
    import jax.numpy as jnp
    from jax import lax

    coefficients = (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
    n = jnp.floor(fused(x, np.float32(1.44269504), np.float32(0.5)))
    r = fused(-n, np.float32(0.693359375), x)
    r = fused(-n, np.float32(-2.12194440e-4), r)
    table = jnp.asarray(coefficients, jnp.float32)
    polynomial = lax.fori_loop(1, len(coefficients), lambda i, p: fused(p, r, table[i]), jnp.full_like(r, table[0]))
    near_one = fused(polynomial, lax.optimization_barrier(r * r), r) + np.float32(1)
    power = lax.bitcast_convert_type((n.astype(jnp.int32) + 127) << 23, jnp.float32)
    return near_one * power


def sum_features(terms: Any) -> Any:
    """Return the sum over axis 0 in one fixed order: four partial sums (index mod 4), then pairs.

    Terms that are products must be sealed. The order is that of the index alone, whatever the trailing axes.

    Args:
        terms: float32 `(n, …)`, n ≥ 1.

    Returns:
        float32 of the trailing shape.
    """
    import jax.numpy as jnp
    from jax import lax

    n = terms.shape[0]
    rows = -(-n // PARTIALS)
    turns = 0 if rows <= _WRITTEN_OUT else -(-rows // _ROWS_A_TURN)
    padded = (turns * _ROWS_A_TURN or rows) * PARTIALS
    if padded > n:
        # x + (−0.0) is x for every x, so padding changes no bit (0.0 would turn −0.0 into 0.0).
        nothing = jnp.full((padded - n, *terms.shape[1:]), -0.0, terms.dtype)
        terms = jnp.concatenate([terms, nothing])
    if not turns:
        table = terms.reshape(rows, PARTIALS, *terms.shape[1:])
        sums = _add_rows(table[0], table, 1, rows)
    else:
        table = terms.reshape(turns, _ROWS_A_TURN, PARTIALS, *terms.shape[1:])
        sums = _add_rows(table[0, 0], table[0], 1, _ROWS_A_TURN)
        sums = lax.fori_loop(1, turns, lambda turn, so_far: _add_rows(so_far, table[turn], 0, _ROWS_A_TURN), sums)
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def _add_rows(so_far: Any, table: Any, first: int, last: int) -> Any:
    for row in range(first, last):
        so_far = so_far + table[row]
    return so_far


def sum_last(terms: Any) -> Any:
    """Return the sum over the last axis in the order of `sum_features`, where steps lead and features follow.

    Args:
        terms: float32 `(…, n)`, n ≥ 1. Terms that are products must be sealed.

    Returns:
        float32 of the leading shape.
    """
    import jax.numpy as jnp
    from jax import lax

    n = terms.shape[-1]
    width = PARTIALS * (n if n <= PARTIALS * _WRITTEN_OUT else _ROWS_A_TURN)
    # Slices of one column each: the compiler makes them one pass with the steps along the vector.
    sums = [terms[..., i] if i < n else jnp.full(terms.shape[:-1], -0.0, terms.dtype) for i in range(PARTIALS)]
    sums = _add_columns(sums, terms, PARTIALS, min(n, width))
    if n > width:
        turns = n // width

        def turn(index: Any, so_far: list[Any]) -> list[Any]:
            return _add_columns(so_far, lax.dynamic_slice_in_dim(terms, index * width, width, -1), 0, width)

        sums = lax.fori_loop(1, turns, turn, sums)
        sums = _add_columns(sums, terms[..., turns * width :], 0, n - turns * width)
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def _add_columns(sums: list[Any], terms: Any, first: int, last: int) -> list[Any]:
    sums = list(sums)
    for column in range(first, last):
        sums[column % PARTIALS] = sums[column % PARTIALS] + terms[..., column]
    return sums
