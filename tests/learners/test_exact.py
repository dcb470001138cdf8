import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.exact import PARTIALS, exp, seal, sum_features, zero_of

EXP_BITS = "bd68162b9da1252c9c1f6f63c34e497dd7c22553c81230d7da59c65449dd2552"


def in_order(terms):
    """The sum of `sum_features`, one addition after another."""
    sums = [None] * PARTIALS
    for place, row in enumerate(terms):
        lane = place % PARTIALS
        sums[lane] = row if sums[lane] is None else sums[lane] + row
    sums = [np.full_like(terms[0], -0.0) if one is None else one for one in sums]
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@pytest.mark.parametrize("lanes", [(), (8,)])
@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 20, 64, 65, 128, 129, 300, 1000])
def test_a_sum_is_taken_in_its_order(features, lanes):
    terms = np.random.default_rng(features).standard_normal((features, *lanes)).astype(np.float32)
    assert np.array_equal(jax.jit(sum_features)(terms), in_order(terms))


def test_a_sum_keeps_the_sign_of_zero():
    assert np.signbit(sum_features(np.full(3, -0.0, np.float32)))


def test_a_sealed_product_is_rounded_before_it_is_added():
    a, rounded = np.float32(1 + 2**-12), np.float32(1 + 2**-11)
    assert jax.jit(lambda a, b, c, t: seal(a * b, zero_of(t)) - c)(a, a, rounded, np.int32(5)) == 0.0
    assert float(a) ** 2 - float(rounded) != 0.0


@pytest.mark.parametrize("value", [np.int32(0), np.int32(7), np.float32(0.0), np.float32(-1.5), np.float32(np.nan)])
def test_a_run_time_zero_is_zero(value):
    zero = jax.jit(zero_of)(value)
    assert zero.dtype == jnp.int32
    assert zero == 0


def test_the_exponential_is_within_an_ulp():
    for low, high in ((-87.0, 87.0), (-10.0, 2.0), (-0.01, 0.01)):
        x = np.linspace(low, high, 1 << 18, dtype=np.float32)
        found = np.asarray(jax.jit(exp)(x, np.int32(0)))
        expected = np.exp(x.astype(np.float64))
        assert np.max(np.abs(found - expected) / np.spacing(found)) < 1.1


def test_the_exponential_is_finite_or_nan():
    found = np.asarray(jax.jit(exp)(np.float32([0.0, np.inf, -np.inf, 1e5, -1e5, np.nan]), np.int32(0)))
    assert found[0] == 1.0
    assert np.isfinite(found[:5]).all()
    assert (found[:5] > 0).all()
    assert np.isnan(found[5])


def test_the_exponential_has_the_same_bits_on_every_release():
    # Where jaxlib 0.10 and 0.12 differ, and everywhere else.
    x = np.concatenate([np.linspace(-7.65, -7.63, 1 << 16), np.linspace(-87, 87, 1 << 18)]).astype(np.float32)
    assert hashlib.sha256(np.asarray(jax.jit(exp)(x, np.int32(0))).tobytes()).hexdigest() == EXP_BITS
