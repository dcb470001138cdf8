"""Arithmetic that does not depend on its context, against wider arithmetic."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alberta_data import exact

MODERATE = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)


@pytest.fixture(scope="module")
def fused():
    return jax.jit(exact.fused)


@settings(max_examples=300, deadline=None)
@given(a=MODERATE, b=MODERATE, c=MODERATE)
def test_fused_is_a_product_and_a_sum_rounded_once(fused, a, b, c):
    wide = np.longdouble(np.float32(a)) * np.longdouble(np.float32(b)) + np.longdouble(np.float32(c))
    assert fused(np.float32(a), np.float32(b), np.float32(c)) == np.float32(wide)


def test_fused_and_the_exponential_do_not_depend_on_how_many_are_computed():
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(1001).astype(np.float32) for _ in range(3))
    many = np.asarray(jax.jit(exact.fused)(a, b, c))
    exps = np.asarray(jax.jit(exact.exp_fused)(a))
    for n in (1, 3, 8, 500):
        assert np.array_equal(np.asarray(jax.jit(exact.fused)(a[:n], b[:n], c[:n])), many[:n])
        assert np.array_equal(np.asarray(jax.jit(exact.exp_fused)(a[:n])), exps[:n])


@pytest.mark.parametrize("function", [exact.exp_fused, lambda x: exact.exp(x, exact.zero_of(np.int32(5)))])
def test_the_exponentials_are_within_two_units_of_the_true_one(function):
    x = np.linspace(-80, 80, 200_001).astype(np.float32)
    true = np.exp(x.astype(np.float64))
    assert np.max(np.abs(np.asarray(jax.jit(function)(x)) - true) / np.spacing(true.astype(np.float32))) < 2


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 20, 63, 64, 65, 129, 300])
def test_both_sums_add_in_one_order_whatever_lies_along_the_other_axes(size):
    terms = np.random.default_rng(size).standard_normal((7, size)).astype(np.float32)
    sums = [terms[:, i::4][:, :1].sum(1) if i < size else np.full(7, -0.0, np.float32) for i in range(4)]
    for i in range(4, size):
        sums[i % 4] = (sums[i % 4] + terms[:, i]).astype(np.float32)
    expected = (sums[0] + sums[1]) + (sums[2] + sums[3])
    assert np.array_equal(jax.jit(exact.sum_last)(terms), expected)
    assert np.array_equal(jax.jit(exact.sum_features)(terms.T), expected)
    assert np.array_equal(jax.jit(exact.sum_last)(terms[2]), expected[2])


def test_the_exponential_of_zero_is_one_and_of_nan_is_nan_whatever_its_bits():
    payloads = np.array([0x7FC00000, 0x7F800001, 0xFFC00001, 0x7FFFFFFF], np.uint32).view(np.float32)
    values = np.concatenate([np.array([0.0, -0.0], np.float32), payloads])
    found = np.asarray(jax.jit(exact.exp)(values, np.int32(0)))
    assert np.array_equal(found[:2], [1.0, 1.0])
    assert np.isnan(found[2:]).all()
