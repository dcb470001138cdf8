"""Parts of the user's own, states of another learner, and derivatives."""

import jax
import numpy as np
import pytest

from alberta_data.errors import ArgumentError
from alberta_data.learners import (
    IDBD,
    LMS,
    Autostep,
    LinearLearner,
    LMSState,
    OnlineNormalizer,
    Optimizer,
    OptimizerUpdate,
)
from alberta_data.replay import learn_from_trajectory
from alberta_data.streams.synthetic import RandomWalkStream
from tests.streams.making import rows

OBSERVATIONS, TARGETS, _ = rows(RandomWalkStream(5), 0, 400)


class Halving(Optimizer[LMSState]):
    """LMS as a user would write it: `init` and `update`, no rule."""

    def init(self, feature_dim):
        return LMSState(jax.numpy.float32(0.01))

    def update(self, state, error, observation):
        step = state.step_size * error
        figures = dict.fromkeys(("mean_step_size", "min_step_size", "max_step_size"), state.step_size)
        return OptimizerUpdate(step * observation, step, state, figures)


@pytest.mark.parametrize("normalizer", [None, OnlineNormalizer()])
def test_an_optimizer_of_ones_own_with_init_and_update_learns_as_the_one_it_imitates(normalizer):
    own, ours = LinearLearner(Halving(), normalizer), LinearLearner(LMS(0.01), normalizer)
    state, metrics = learn_from_trajectory(own, OBSERVATIONS, TARGETS)
    expected_state, expected = learn_from_trajectory(ours, OBSERVATIONS, TARGETS)
    np.testing.assert_allclose(metrics, expected, rtol=1e-3, atol=1e-5)
    prediction = own.predict(state, OBSERVATIONS[0])
    np.testing.assert_allclose(prediction, ours.predict(expected_state, OBSERVATIONS[0]), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("optimizer", [LMS(), IDBD(), Autostep()])
def test_predictions_and_targets_have_the_derivatives_of_their_formulas(optimizer):
    learner = LinearLearner(optimizer)
    state = learner.init(5)
    slope = jax.grad(lambda w: learner.predict(state._replace(weights=w), OBSERVATIONS[0])[0])(state.weights)
    np.testing.assert_allclose(slope, OBSERVATIONS[0])
    stream = RandomWalkStream(5, drift_rate=0)
    begun = stream.init(jax.random.key(0))
    slope = jax.grad(lambda w: stream.step(begun._replace(true_weights=w))[0].target[0])(begun.true_weights)
    np.testing.assert_allclose(slope, stream.step(begun)[0].observation)


@pytest.mark.parametrize("state", [LinearLearner(Autostep()).init(4), LinearLearner(LMS()).init(5)])
def test_a_state_of_another_learner_or_width_is_refused_in_one_line(state):
    with pytest.raises(ArgumentError, match="learner_state must be one of Autostep for 5 features"):
        learn_from_trajectory(LinearLearner(Autostep()), OBSERVATIONS, TARGETS, learner_state=state)
