"""The host's keys against jax.random, bit by bit."""

import numpy as np
import pytest

from alberta_data import host_keys
from alberta_data.errors import ArgumentError

jax = pytest.importorskip("jax")

SEEDS = [0, 1, 7, 12345, 2**31 - 1, 2**31, 2**32 - 1]


@pytest.fixture(autouse=True)
def _published_keys():
    with jax.threefry_partitionable(True):
        yield


def jax_key(seed):
    return jax.random.wrap_key_data(np.array([0, seed], np.uint32), impl="threefry2x32")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_the_words_of_jax(seed):
    words = jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))
    assert np.array_equal(host_keys.key(seed), words)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_beyond_32_bits_is_refused(seed):
    with pytest.raises(ArgumentError, match=str(seed)):
        host_keys.key(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_split_fold_in_and_bits_are_those_of_jax(seed):
    mine, theirs = host_keys.key(seed), jax_key(seed)
    for n in (1, 2, 5, 64):
        assert np.array_equal(host_keys.split(mine, n), jax.random.key_data(jax.random.split(theirs, n)))
    for data in (0, 1, 3, 2**31 + 5):
        expected = jax.random.key_data(jax.random.fold_in(theirs, np.uint32(data)))
        assert np.array_equal(host_keys.fold_in(mine, data), expected)
    for shape in ((), (1,), (3,), (2, 3), (101,)):
        assert np.array_equal(host_keys.bits(mine, shape), jax.random.bits(theirs, shape))


def test_many_keys_at_once_give_what_each_gives_alone():
    keys = host_keys.split(host_keys.key(5), 50)
    assert np.array_equal(host_keys.bits(keys, (4,)), np.stack([host_keys.bits(k, (4,)) for k in keys]))
    assert np.array_equal(host_keys.uniform(keys), np.stack([host_keys.uniform(k) for k in keys]))
    assert np.array_equal(host_keys.fold_in(keys, 3), np.stack([host_keys.fold_in(k, 3) for k in keys]))
    alone = [host_keys.randint(k, (2,), -3, 11) for k in keys]
    assert np.array_equal(host_keys.randint(keys, (2,), -3, 11), np.stack(alone))


BOUNDS = [
    (0.0, 1.0),
    (-2.0, 2.0),
    (-0.4, 0.4),
    (0.1, 0.7),
    (-3.3, 5.1),
    (1e-9, 1e3),
    (-1e-30, 1e10),
    ([-1.0, 0.1, -7.7], [1.0, 0.3, 1e6]),
]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_uniform_is_that_of_jax(low, high):
    keys = host_keys.split(host_keys.key(9), 100)
    shape = np.shape(low)
    lo, hi = np.asarray(low, np.float32), np.asarray(high, np.float32)
    typed = jax.random.wrap_key_data(keys, impl="threefry2x32")
    # Bounds as a Box has them, one for each number: with bounds that are broadcast, jax 0.12 rounds twice in places.
    for size in (shape, (5, *shape)):
        lo, hi = np.broadcast_to(lo, size), np.broadcast_to(hi, size)
        expected = np.stack([np.asarray(jax.random.uniform(k, size, np.float32, lo, hi)) for k in typed])
        assert np.array_equal(host_keys.uniform(keys, size, lo, hi), expected)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 2), (0, 3), (0, 6), (0, 500), (-4, 3), (0, 65536), (0, 65537), (0, 2**31 - 1)]
)
def test_randint_is_that_of_jax(low, high):
    keys = host_keys.split(host_keys.key(11), 60)
    typed = jax.random.wrap_key_data(keys, impl="threefry2x32")
    for shape in ((), (3,)):
        expected = jax.vmap(lambda k, shape=shape: jax.random.randint(k, shape, low, high))(typed)
        found = host_keys.randint(keys, shape, low, high)
        assert found.dtype == np.int32
        assert np.array_equal(found, expected)
