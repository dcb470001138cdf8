"""Keys and draws against `jax.random`, bit for bit."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data import keys
from alberta_data.errors import ArgumentError

SEEDS = (0, 1, 7, 2**31, 2**32 - 1)


def pair(seed):
    return jax.random.key(np.uint32(seed), impl="threefry2x32"), keys.key(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_becomes_the_words_of_jax_random_key(seed):
    theirs, ours = pair(seed)
    assert np.array_equal(jax.random.key_data(theirs), jax.random.key_data(ours))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draw", [
    lambda k: jax.random.key_data(jax.random.split(k, 5)),
    lambda k: jax.random.key_data(jax.random.fold_in(k, 77)),
    lambda k: jax.random.normal(k, (1001,), jnp.float32),
    lambda k: jax.random.uniform(k, (3, 7), jnp.float32, -2.0, 5.0),
    lambda k: jax.random.randint(k, (11,), 0, 1000, jnp.int32),
    lambda k: jax.random.bits(k, (9,), jnp.uint8),
    lambda k: jax.random.bits(k, (9,), jnp.uint16),
    lambda k: jax.random.permutation(k, 20),
])  # fmt: skip
def test_jax_random_draws_the_same_from_our_keys(seed, draw):
    theirs, ours = pair(seed)
    assert np.array_equal(draw(theirs), draw(ours))


@pytest.mark.parametrize("seed", SEEDS)
def test_words_are_drawn_from_as_jax_random_draws_from_keys(seed):
    theirs, ours = pair(seed)
    words = keys.words_of(ours)
    assert np.array_equal(keys.normal(words, 501), jax.random.normal(theirs, (501,), jnp.float32))
    low, high = np.log(np.float32(0.01)), np.log(np.float32(100))
    uniform = jax.jit(lambda key: jax.random.uniform(key, (501,), jnp.float32, low, high))
    assert np.array_equal(keys.uniform(words, 501, low, high), uniform(theirs))
    for span in (1, 3, 5, 300, 65537, 2**31 - 1):
        assert keys.randint(words, 0, span) == jax.random.randint(theirs, (), 0, span, jnp.int32)


def test_many_keys_at_once_give_what_each_gives_alone():
    words = keys.words_of(jax.random.split(keys.key(3), 6))
    together = keys.normal(words, 5, 0.3)
    alone = [keys.normal(keys.Words(words.high[i], words.low[i]), 5, 0.3) for i in range(6)]
    assert np.array_equal(together, np.stack(alone))


@pytest.mark.parametrize("steps", [(), (5,)])
@pytest.mark.parametrize("sizes", [(20,), (1,), (1, 1), (20, 1), (20, 20, 1), (3, 1, 20, 64, 1), (8, 8)])
def test_numbers_drawn_together_are_those_drawn_alone(sizes, steps):
    words = keys.words_of(jax.random.split(keys.key(1), steps or (1,)))
    words = words if steps else keys.Words(words.high[0], words.low[0])

    def promised(words):
        return [keys.Normal(keys.split(words, i), size, 0.5 + i) for i, size in enumerate(sizes)]

    drawn = jax.jit(lambda words: keys.together(promised(words)))(words)
    assert len(drawn) == sum(size == 1 for size in sizes) + any(size > 1 for size in sizes)
    assert all(array.shape[-1] == 1 or array.shape[-1] % 8 == 0 for array in drawn)
    alone = jax.jit(lambda words: [promise.numbers() for promise in promised(words)])(words)
    for numbers, found in zip(alone, keys.apart(drawn, promised(words)), strict=True):
        assert np.array_equal(found, numbers)


def test_any_threefry_key_typed_or_raw_is_carried_on():
    words = np.array([0, 9], np.uint32)
    for key in (jax.random.key(9, impl="threefry2x32"), words, jnp.asarray(words), keys.key(9)):
        assert np.array_equal(jax.random.key_data(keys.as_key(key)), words)


@pytest.mark.parametrize("key", [jax.random.key(0, impl="rbg"), np.zeros(4, np.uint32), np.zeros(2, np.int32), 3])
def test_a_key_of_another_implementation_is_refused(key):
    with pytest.raises(ValueError, match="a key must be threefry2x32"):
        keys.as_key(key)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, "0", None])
def test_a_seed_outside_32_bits_is_refused(seed):
    with pytest.raises(ArgumentError, match="seed must be a whole number from 0 to 4294967295"):
        keys.check_seed(seed)


def test_a_process_forked_before_this_package_was_imported_is_known_by_its_threads():
    code = (
        "import os, jax; jax.numpy.zeros(1).block_until_ready()\n"
        "child = os.fork()\n"
        "from alberta_data import xla\n"
        "os.write(1, f'{child == 0} {xla.forked()}\\n'.encode())\n"
        "os._exit(0) if child == 0 else os.waitpid(child, 0)"
    )
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert sorted(said.stdout.splitlines()) == ["False False", "True True"], said.stderr
