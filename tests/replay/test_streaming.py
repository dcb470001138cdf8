from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.blocks import Block, TimeStep
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, NormalizedLinearLearner, WelfordNormalizer
from alberta_data.replay import (
    Fold,
    NormalizerTrackingConfig,
    StepSizeTrackingConfig,
    Tracking,
    learn_from_trajectory,
    run_learning_loop,
    run_learning_loop_batched,
    run_normalized_learning_loop,
    run_normalized_learning_loop_batched,
)

KEY = jax.random.key(7)
STEPS = 230


@dataclass(frozen=True)
class Steady:
    """A stream of someone's own."""

    feature_dim: int = 3

    def init(self, key):
        return key

    def step(self, state, idx):
        key, kx = jax.random.split(state)
        x = jax.random.normal(kx, (self.feature_dim,))
        return TimeStep(x, jnp.reshape(x[0] - 2 * x[1] + 0.5, (1,))), key


def pairs(key=KEY):
    """The same steps as arrays."""
    _, (x, y) = jax.lax.scan(
        lambda state, idx: (lambda one, after: (after, tuple(one)))(*Steady().step(state, idx)), key, jnp.arange(STEPS)
    )
    return np.asarray(x), np.asarray(y)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def states_after(learner, every):
    """The states after steps 0, every, 2·every, … looked at one by one."""
    x, y = pairs()
    state, kept = learner.init(3), []
    for t in range(STEPS // every * every):
        state = learner.update(state, x[t], y[t]).state
        if t % every == 0:
            kept.append(state)
    return kept


def test_a_stream_gives_the_bits_of_its_steps_as_arrays():
    learner = LinearLearner(IDBD())
    assert same(run_learning_loop(learner, Steady(), STEPS, KEY), learn_from_trajectory(learner, *pairs()))


def test_a_run_can_begin_with_a_state():
    learner = NormalizedLinearLearner(Autostep())
    begun, _ = learn_from_trajectory(learner, *pairs())
    found = run_normalized_learning_loop(learner, Steady(), STEPS, KEY, begun)
    assert same(found, learn_from_trajectory(learner, *pairs(), begun))


@pytest.mark.parametrize("every", [1, 7, 100, STEPS])
def test_idbd_is_recorded_every_so_many_steps(every):
    learner = LinearLearner(IDBD(0.02, 0.05))
    state, metrics, history = run_learning_loop(
        learner, Steady(), STEPS, KEY, step_size_tracking=StepSizeTrackingConfig(every)
    )
    kept = states_after(learner, every)
    assert history.recording_indices.tolist() == [place * every for place in range(STEPS // every)]
    expected = np.exp(np.stack([one.optimizer_state.log_step_sizes for one in kept]))
    np.testing.assert_allclose(history.step_sizes, expected, rtol=1e-6)
    assert np.array_equal(history.bias_step_sizes, [one.optimizer_state.bias_step_size for one in kept])
    assert history.normalizers is None
    assert same((state, metrics), run_learning_loop(learner, Steady(), STEPS, KEY))


def test_autostep_is_recorded_with_its_normalisers_and_without_the_bias():
    learner = LinearLearner(Autostep())
    *_, history = run_learning_loop(
        learner, Steady(), STEPS, KEY, step_size_tracking=StepSizeTrackingConfig(10, include_bias=False)
    )
    kept = [one.optimizer_state for one in states_after(learner, 10)]
    assert np.array_equal(history.step_sizes, np.stack([one.step_sizes for one in kept]))
    assert np.array_equal(history.normalizers, np.stack([one.normalizers for one in kept]))
    assert history.bias_step_sizes is None


def test_lms_is_recorded_as_the_constant_it_is():
    *_, history = run_learning_loop(
        LinearLearner(LMS(0.003)), Steady(), STEPS, KEY, step_size_tracking=StepSizeTrackingConfig(50)
    )
    assert (np.asarray(history.step_sizes) == np.float32(0.003)).all()
    assert history.step_sizes.shape == (4, 3)


@pytest.mark.parametrize("rule", [None, WelfordNormalizer()], ids=["ema", "welford"])
def test_a_normaliser_is_recorded_beside_the_step_sizes(rule):
    learner = NormalizedLinearLearner(Autostep(), *([rule] if rule else []))
    *rest, sizes, scales = run_normalized_learning_loop(
        learner, Steady(), STEPS, KEY, None, StepSizeTrackingConfig(50), NormalizerTrackingConfig(20)
    )
    kept = [one.normalizer_state for one in states_after(learner, 20)]
    assert np.array_equal(scales.means, np.stack([one.mean for one in kept]))
    assert np.array_equal(scales.variances, np.stack([one.var for one in kept]))
    assert scales.recording_indices.tolist() == list(range(0, 220, 20))
    assert sizes.step_sizes.shape == (4, 3)
    assert len(rest) == 2
    *_, alone = run_normalized_learning_loop(
        learner, Steady(), STEPS, KEY, normalizer_tracking=NormalizerTrackingConfig(20)
    )
    assert same(alone, scales)


@pytest.mark.parametrize(
    ("interval", "said"), [(0, "interval must be >= 1"), (-3, "interval must be >= 1"), (51, "must be <= num_steps")]
)
@pytest.mark.parametrize("config", [StepSizeTrackingConfig, NormalizerTrackingConfig])
def test_an_interval_out_of_range_is_refused(config, interval, said):
    name = "step_size_tracking" if config is StepSizeTrackingConfig else "normalizer_tracking"
    with pytest.raises(ValueError, match=said):
        run_learning_loop(NormalizedLinearLearner(), Steady(), 50, KEY, **{name: config(interval)})


def test_tracking_a_normaliser_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="normalizer_tracking needs a learner with a normalizer"):
        run_learning_loop(LinearLearner(), Steady(), 50, KEY, normalizer_tracking=NormalizerTrackingConfig(5))


@pytest.mark.parametrize("raw", [False, True], ids=["typed keys", "raw keys"])
def test_seeds_in_a_batch_have_the_bits_of_each_alone(raw):
    keys = jax.random.split(KEY, 3)
    learner = LinearLearner(Autostep())
    given = jax.random.key_data(keys) if raw else keys
    found = run_learning_loop_batched(learner, Steady(), STEPS, given, step_size_tracking=StepSizeTrackingConfig(50))
    for place in range(3):
        state, metrics, history = run_learning_loop(
            learner, Steady(), STEPS, given[place], step_size_tracking=StepSizeTrackingConfig(50)
        )
        assert np.array_equal(found.metrics[place], metrics)
        assert same(jax.tree.map(lambda leaf, place=place: leaf[place], found.states), state)
        assert np.array_equal(found.step_size_history.step_sizes[place], history.step_sizes)
        assert np.array_equal(found.step_size_history.recording_indices, history.recording_indices)


def test_a_normalised_batch_has_both_histories_or_none():
    keys = jax.random.split(KEY, 2)
    learner = NormalizedLinearLearner(IDBD())
    found = run_normalized_learning_loop_batched(
        learner, Steady(), STEPS, keys, normalizer_tracking=NormalizerTrackingConfig(100)
    )
    assert found.metrics.shape == (2, STEPS, 4)
    assert found.normalizer_history.means.shape == (2, 2, 3)
    assert found.step_size_history is None
    assert run_normalized_learning_loop_batched(learner, Steady(), STEPS, keys).normalizer_history is None


def test_recordings_of_a_grid_do_not_depend_on_blocks_or_a_resume():
    x, y = pairs()
    learners = [LinearLearner(rule, WelfordNormalizer()) for rule in (IDBD(), IDBD(0.1), Autostep())]

    def recorded(sizes, resume=False):
        fold, start = Fold(learners, 3, tracking=Tracking(10, 30)), 0
        for size in sizes:
            stop = start + size
            fold.advance(Block(start, {"observations": x[start:stop], "targets": y[start:stop]}))
            start = stop
            if resume:
                kept = fold.checkpoint()
                fold = Fold(learners, 3, tracking=Tracking(10, 30))
                fold.restore(kept)
        return [fold.histories(member) for member in range(3)]

    whole = recorded([STEPS])
    assert same(whole, recorded([1, 9, 11, 100, 109]))
    assert same(whole, recorded([115, 115], resume=True))
    assert [table.shape for table in whole[2]] == [(23, 4), (23, 4), (8, 3), (8, 3)]
