"""The loops inside a user's own `jit` and `vmap`: the bits are those outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.errors import ArgumentError
from alberta_data.learners import IDBD, LMS, Autostep, EMANormalizer, LinearLearner, NormalizedLinearLearner
from alberta_data.replay import (
    StepSizeTrackingConfig,
    learn_from_trajectory,
    run_learning_loop,
    run_learning_loop_batched,
)
from alberta_data.streams.abrupt import AbruptChangeStream
from alberta_data.streams.registry import STREAMS
from alberta_data.streams.scaled import ScaledStreamWrapper
from tests.streams.making import with_features

STREAM, STEPS = AbruptChangeStream(5, change_interval=40), 300
LEARNERS = [
    LinearLearner(LMS(0.02)),
    LinearLearner(IDBD(0.02, 0.001)),
    LinearLearner(Autostep(0.02)),
    NormalizedLinearLearner(Autostep(0.02), EMANormalizer()),
]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_loop_under_jit_has_the_bits_of_the_loop_outside(learner):
    inside = jax.jit(lambda key: run_learning_loop(learner, STREAM, STEPS, key))(jax.random.key(3))
    assert same(inside, run_learning_loop(learner, STREAM, STEPS, jax.random.key(3)))


@pytest.mark.parametrize("name", STREAMS)
def test_a_loop_over_any_stream_under_jit_has_the_bits_of_the_loop_outside(name):
    stream = with_features(name, 5)
    inside = jax.jit(lambda key: run_learning_loop(LEARNERS[3], stream, 100, key))(jax.random.key(3))
    assert same(inside, run_learning_loop(LEARNERS[3], stream, 100, jax.random.key(3)))


def test_where_nothing_given_is_traced_the_loop_is_the_one_outside():
    x, y = np.ones((20, 3), np.float32), np.arange(20, dtype=np.float32)
    outside = run_learning_loop(LEARNERS[2], STREAM, 50, 3)[1], learn_from_trajectory(LEARNERS[1], x, y)[1]

    def inside(scale):
        found = run_learning_loop(LEARNERS[2], STREAM, 50, 3)[1], learn_from_trajectory(LEARNERS[1], x, y)[1]
        return jax.tree.map(lambda leaf: leaf * scale, found)

    assert same(jax.jit(inside)(1.0), outside)
    assert same(jax.tree.map(lambda leaf: leaf[0], jax.vmap(inside)(jnp.ones(2))), outside)


class Counting:
    """A learner whose state has leaves of every dtype, one of them negative and one empty."""

    def init(self, feature_dim):
        leaves = (jnp.int32(-1), jnp.bool_(False), jnp.float16(0.5), jnp.uint8(3), jnp.zeros((0, 2)), jnp.uint32(9))
        return (*leaves, jax.random.key(0), jnp.zeros(feature_dim))

    def update(self, state, observation, target):
        last, started, half, small, empty, word, key, weights = state
        error = target[0] - weights @ observation
        after = (last - 1, ~started, half * 0.5, small + 1, empty, word * 3, jax.random.split(key)[0])
        return Result((*after, weights + 0.01 * error * observation), jnp.stack([error, jnp.float32(last)]))


class Result:
    """No tree of jax's: its attributes are all that counts."""

    def __init__(self, state, metrics):
        self.state, self.metrics = state, metrics


def test_a_state_of_any_dtypes_goes_through_jit():
    learner, key = Counting(), jax.random.key(0)
    outside = run_learning_loop(learner, STREAM, 50, key)[1]
    state = learner.init(5)
    by_state = jax.jit(lambda state: run_learning_loop(learner, STREAM, 50, key, state)[1])(state)
    by_key = jax.jit(lambda key: run_learning_loop(learner, STREAM, 50, key)[1])(key)
    for inside in (by_state, by_key):
        np.testing.assert_allclose(inside, outside, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [LMS, IDBD, Autostep])
def test_step_sizes_under_vmap_are_those_of_each_alone(kind):
    sizes = jnp.array([0.003, 0.01, 0.05])
    found = jax.vmap(lambda size: run_learning_loop(LinearLearner(kind(size)), STREAM, 60, 3)[1])(sizes)
    for lane, size in enumerate(sizes):
        alone = run_learning_loop(LinearLearner(kind(float(size))), STREAM, 60, 3)[1]
        np.testing.assert_allclose(found[lane], alone, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_step_size_is_that_of_differences():
    def error(size):
        return run_learning_loop(LinearLearner(LMS(size)), STREAM, 30, 3)[1][:, 0].mean()

    ahead, behind = (float(error(0.01 + step)) for step in (1e-4, -1e-4))
    assert float(jax.grad(error)(0.01)) == pytest.approx((ahead - behind) / 2e-4, rel=2e-2)


def test_a_normalisers_decay_may_be_traced():
    state = jax.jit(lambda decay: EMANormalizer(decay=decay).init(3))(0.5)
    assert float(state.decay) == 0.5


def test_a_loop_under_vmap_has_the_bits_of_each_seed_alone():
    keys = jax.random.split(jax.random.key(1), 3)
    state, metrics = jax.vmap(lambda key: run_learning_loop(LEARNERS[2], STREAM, STEPS, key))(keys)
    for lane, key in enumerate(keys):
        alone = run_learning_loop(LEARNERS[2], STREAM, STEPS, key)
        assert same((jax.tree.map(lambda leaf, lane=lane: leaf[lane], state), metrics[lane]), alone)


def test_the_batched_loop_under_jit_is_the_batched_loop():
    keys = jax.random.split(jax.random.key(1), 3)
    inside = jax.jit(lambda keys: tuple(run_learning_loop_batched(LEARNERS[1], STREAM, 100, keys))[:2])(keys)
    assert same(inside, tuple(run_learning_loop_batched(LEARNERS[1], STREAM, 100, keys))[:2])


@pytest.mark.parametrize("columns", [0, 1, 2])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_arrays_under_jit_have_the_bits_of_arrays_outside(learner, columns):
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=(200, columns) if columns else 200).astype(np.float32)
    inside = jax.jit(lambda x, y: learn_from_trajectory(learner, x, y))(x, y)
    outside = learn_from_trajectory(learner, x, y)
    assert same(inside, outside)
    again = jax.jit(lambda state: learn_from_trajectory(learner, x, y, state))(outside[0])
    assert same(again, learn_from_trajectory(learner, x, y, outside[0]))


def test_one_target_column_under_jit_is_that_column():
    x, y = np.ones((50, 3), np.float32), np.arange(100, dtype=np.float32).reshape(50, 2)
    inside = jax.jit(lambda y: learn_from_trajectory(LEARNERS[0], x, y, target=1))(y)
    assert same(inside, learn_from_trajectory(LEARNERS[0], x, y, target=1))


def test_a_learner_of_ones_own_goes_through_jit():
    class Mean:
        def init(self, feature_dim):
            return jnp.zeros(())

        def update(self, state, observation, target):
            return Result(state + 0.5 * (target[0] - state), {"error": target[0] - state})

    x, y = np.ones((50, 3), np.float32), np.arange(50, dtype=np.float32)
    inside = jax.jit(lambda y: learn_from_trajectory(Mean(), x, y))(y)
    assert same(inside, learn_from_trajectory(Mean(), x, y))


def test_a_gradient_goes_through_a_loop():
    x = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    state = LEARNERS[0].init(2)

    def error(weights):
        return learn_from_trajectory(LEARNERS[0], x, x[:, 0], state._replace(weights=weights))[1][:, 0].sum()

    slope = jax.grad(error)(state.weights)
    step = 1e-2
    for at in range(2):
        ahead, behind = (float(error(state.weights.at[at].add(sign * step))) for sign in (1, -1))
        assert float(slope[at]) == pytest.approx((ahead - behind) / (2 * step), rel=1e-2)


@pytest.mark.parametrize(
    "call",
    [
        lambda key: run_learning_loop(LEARNERS[0], STREAM, 10, key, step_size_tracking=StepSizeTrackingConfig(5)),
        lambda key: learn_from_trajectory(LEARNERS[0], jnp.ones((9, 2)), jnp.ones(9) * key[0], every=3),
        lambda key: learn_from_trajectory(LEARNERS[0], jnp.ones((9, 2)), jnp.ones((9, 2)) * key[0], target=2),
        lambda key: learn_from_trajectory(LEARNERS[0], jnp.ones((9, 2)), jnp.ones(8) * key[0]),
        lambda key: learn_from_trajectory(LEARNERS[0], Stored(), learner_state=key),
        lambda key: learn_from_trajectory(LEARNERS[0], jnp.ones((0, 2)), jnp.ones(0) * key[0]),
        lambda key: learn_from_trajectory(LEARNERS[0], jnp.ones((9, 2)), jnp.ones(9), learner_state=key),
        lambda key: run_learning_loop(LEARNERS[0], AbruptChangeStream(5, noise_std=key[0] * 1.0), 10, 3),
        lambda key: run_learning_loop(LEARNERS[0], ScaledStreamWrapper(STREAM, jnp.ones(5) * key[0]), 10, 3),
        lambda key: run_learning_loop_batched(LEARNERS[0], STREAM, 10, key),
    ],
    ids=["tracking", "every", "column", "rows", "dataset", "no rows", "state", "stream", "scales", "one key"],
)
def test_what_cannot_be_traced_is_refused_in_one_line(call):
    with pytest.raises(ArgumentError, match=r"must|outside|one key") as caught:
        jax.jit(call)(jax.random.PRNGKey(0))
    assert "\n" not in str(caught.value)


class Stored:
    """Has what a dataset is known by."""

    def blocks(self):
        raise AssertionError
