import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.errors import ArgumentError
from alberta_data.learners import (
    IDBD,
    LMS,
    NORMALIZERS,
    OPTIMIZERS,
    Autostep,
    AutostepState,
    IDBDState,
    LearnerState,
    LinearLearner,
    LMSState,
    NormalizedLearnerState,
    NormalizedLinearLearner,
    NormalizerState,
    OnlineNormalizer,
    UpdateResult,
    create_normalizer_state,
)

X = np.array([1.0, -2.0, 0.5], np.float32)


def test_states_have_the_published_fields():
    assert LMSState._fields == ("step_size",)
    assert IDBDState._fields == ("log_step_sizes", "traces", "meta_step_size", "bias_step_size", "bias_trace")
    assert AutostepState._fields == (
        *("step_sizes", "traces", "normalizers", "meta_step_size", "tau"),
        *("bias_step_size", "bias_trace", "bias_normalizer"),
    )
    assert LearnerState._fields == ("weights", "bias", "optimizer_state")
    assert NormalizedLearnerState._fields == ("learner_state", "normalizer_state")
    assert NormalizerState._fields == ("mean", "var", "sample_count", "decay")
    assert UpdateResult._fields == ("state", "prediction", "error", "metrics")


@pytest.mark.parametrize("normalizer", [None, OnlineNormalizer()], ids=["without", "with normaliser"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values())
def test_an_update_keeps_every_shape_and_dtype_of_the_state(optimizer, normalizer):
    learner = LinearLearner(optimizer(), normalizer)
    state = learner.init(3)
    result = learner.update(state, X, np.float32([2.0]))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), result.state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), state
    )
    assert (result.prediction.shape, result.error.shape) == ((1,), (1,))
    assert result.metrics.shape == (len(learner.columns),)
    assert float(result.metrics[0]) == float(result.error[0]) ** 2 == 4.0
    assert learner.predict(result.state, X).shape == (1,)


def test_a_target_may_be_a_number_and_not_two():
    learner = LinearLearner()
    state = learner.init(3)
    assert learner.update(state, X, 2.0).error == learner.update(state, X, np.float32([2.0])).error
    with pytest.raises(ArgumentError, match=r"\(2,\)"):
        learner.update(state, X, np.zeros(2))


def test_an_observation_of_another_width_is_refused():
    learner = LinearLearner()
    with pytest.raises(ArgumentError, match=r"\(3,\), got \(4,\)"):
        learner.update(learner.init(3), np.zeros(4), 1.0)


def test_no_features_is_refused():
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="feature_dim"):
            LinearLearner().init(bad)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values())
def test_an_optimizer_alone_does_what_it_does_inside_the_learner(optimizer):
    learner = LinearLearner(optimizer(), None)
    state = learner.init(3)
    for target in (1.0, -2.0, 3.0):
        result = learner.update(state, X, target)
        alone = learner.optimizer.update(state.optimizer_state, result.error, X)
        assert np.array_equal(state.weights + alone.weight_delta, result.state.weights)
        assert np.array_equal(state.bias + alone.bias_delta, result.state.bias)
        assert all(map(np.array_equal, jax.tree.leaves(alone.new_state), jax.tree.leaves(result.state.optimizer_state)))
        assert float(alone.metrics["mean_step_size"]) == float(result.metrics[2])
        sizes = [float(alone.metrics[name]) for name in ("min_step_size", "mean_step_size", "max_step_size")]
        assert sizes == sorted(sizes)
        assert alone.bias_delta.shape == alone.metrics["min_step_size"].shape == ()
        state = result.state


def test_the_bias_of_lms_is_a_weight_of_an_input_that_is_one():
    update = LMS(0.1).update(LMS(0.1).init(3), 0.5, X)
    assert np.array_equal(update.weight_delta, np.float32(0.1) * np.float32(0.5) * X)
    assert update.bias_delta == np.float32(0.1) * np.float32(0.5)


def test_prediction_uses_the_normaliser_as_it_is():
    learner = NormalizedLinearLearner(LMS(0.1))
    state = learner.init(3)
    for target in (1.0, 2.0):
        state = learner.update(state, X * target, target).state
    scaled = learner.normalizer.normalize_only(state.normalizer_state, X)
    expected = float(np.sum(np.float64(scaled) * np.float64(state.weights))) + float(state.bias)
    assert float(learner.predict(state, X)[0]) == pytest.approx(expected, rel=1e-5)


def test_a_learner_goes_through_jit_scan_and_vmap():
    learner = NormalizedLinearLearner(Autostep())
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6, 3)), jnp.float32)

    def run(observations):
        def step(state, x):
            result = learner.update(state, x, x[0])
            return result.state, result.metrics

        return jax.lax.scan(step, learner.init(3), observations)

    _, together = jax.jit(jax.vmap(run))(rows)
    for seed in range(4):
        np.testing.assert_allclose(run(rows[seed])[1], together[seed], rtol=1e-4, atol=1e-6)


def test_create_normalizer_state_is_the_state_of_a_new_normaliser():
    state = create_normalizer_state(2, 0.9)
    assert state.decay == np.float32(0.9)
    assert (np.asarray(state.mean) == 0).all()
    assert (np.asarray(state.var) == 1).all()
    assert state.sample_count == 0


@pytest.mark.parametrize("normalizer", [kind for kind in NORMALIZERS.values() if kind is not None])
def test_the_three_ways_to_normalise_are_one(normalizer):
    rule = normalizer()
    state = rule.init(3)
    for scale in (1.0, 3.0, -2.0):
        scaled, after = rule.normalize(state, X * scale)
        only = rule.update_only(state, X * scale)
        assert all(map(np.array_equal, jax.tree.leaves(after), jax.tree.leaves(only)))
        assert np.array_equal(scaled, rule.normalize_only(after, X * scale))
        state = after
    assert state.sample_count == 3


def test_idbd_starts_at_its_initial_step_size():
    state = IDBD(0.05).init(2)
    assert np.asarray(state.log_step_sizes) == pytest.approx(np.log(0.05))
    assert state.bias_step_size == np.float32(0.05)
