"""What users make of our classes, and what they hand in by mistake."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.dataset import create_dataset
from alberta_data.errors import ArgumentError
from alberta_data.learners import IDBD, LinearLearner, NormalizedLinearLearner, OnlineNormalizer, Optimizer
from alberta_data.learners.base import OptimizerUpdate
from alberta_data.replay import (
    Fold,
    StepSizeTrackingConfig,
    learn_from_trajectory,
    run_learning_loop,
    run_learning_loop_batched,
)
from alberta_data.streams.abrupt import AbruptChangeStream
from alberta_data.streams.scaled import ScaledStreamWrapper

KEY = jax.random.key(0)


@dataclass(frozen=True)
class Sevens(AbruptChangeStream):
    """Another target."""

    def step(self, state, idx=None):
        step, state = super().step(state, idx)
        return step._replace(target=step.target * 0 + 7), state


class Shifted(ScaledStreamWrapper):
    """Another observation."""

    def step(self, state, idx=None):
        step, state = super().step(state, idx)
        return step._replace(observation=step.observation * 0 + 2), state


@dataclass(frozen=True)
class Still(IDBD):
    """Does not learn."""

    def update(self, state, error, observation):
        found = super().update(state, error, observation)
        return found._replace(weight_delta=found.weight_delta * 0, bias_delta=found.bias_delta * 0)


@dataclass(frozen=True)
class Ones(OnlineNormalizer):
    """Forgets the observation."""

    def normalize(self, state, observation):
        scaled, state = super().normalize(state, observation)
        return scaled * 0 + 1, state


class Rate(Optimizer):
    """An optimizer of one's own, whose rate may be changed."""

    def __init__(self, rate):
        self.rate = rate

    def init(self, feature_dim):
        return jnp.zeros(())

    def update(self, state, error, observation):
        error = jnp.squeeze(error)
        return OptimizerUpdate(self.rate * error * observation, self.rate * error, state, {"mean_step_size": self.rate})


def test_a_subclass_of_a_stream_has_its_own_step(tmp_path):
    metrics = run_learning_loop(LinearLearner(), Sevens(4), 3, KEY)[1]
    assert metrics[0, 1] == 7.0
    assert run_learning_loop(LinearLearner(), ScaledStreamWrapper(Sevens(4), np.ones(4)), 3, KEY)[1][0, 1] == 7.0
    with create_dataset(Sevens(4), steps=50, seed=0, path=tmp_path / "d.zarr") as dataset:
        assert (dataset.targets[:] == 7).all()
        assert dataset.spec["kind"] == "external"
        assert dataset.spec["stream"].endswith("Sevens")


def test_a_subclass_of_the_wrapper_has_its_own_step(tmp_path):
    stream = Shifted(AbruptChangeStream(3), np.ones(3))
    with create_dataset(stream, steps=20, seed=0, path=tmp_path / "d.zarr") as dataset:
        assert (dataset.observations[:] == 2).all()
        assert dataset.spec["kind"] == "external"


def test_a_subclass_of_an_optimizer_has_its_own_update():
    learner = LinearLearner(Still())
    state = learner.update(learner.init(4), jnp.arange(4.0), jnp.array([1.0])).state
    assert not np.asarray(state.weights).any()
    assert not np.asarray(run_learning_loop(learner, AbruptChangeStream(4), 9, KEY)[0].weights).any()


def test_a_subclass_of_a_normaliser_has_its_own_normalize():
    learner = NormalizedLinearLearner(IDBD(), Ones())
    state = run_learning_loop(learner, AbruptChangeStream(4), 9, KEY)[0].learner_state
    assert len(set(np.asarray(state.weights).tolist())) == 1


def test_a_learner_that_was_changed_learns_as_it_now_is():
    rate = Rate(0.1)
    learner = LinearLearner(rate)
    first = run_learning_loop(learner, AbruptChangeStream(4), 9, KEY)[1]
    rate.rate = 0.01
    changed = run_learning_loop(learner, AbruptChangeStream(4), 9, KEY)[1]
    assert np.array_equal(changed, run_learning_loop(LinearLearner(Rate(0.01)), AbruptChangeStream(4), 9, KEY)[1])
    assert not np.array_equal(first, changed)


def test_a_streams_state_can_be_pickled():
    state = AbruptChangeStream(4).init(KEY)
    again = pickle.loads(pickle.dumps(state))
    one, other = (AbruptChangeStream(4).step(which)[0] for which in (state, again))
    assert np.array_equal(one.observation, other.observation)


def test_a_group_hands_over_its_metrics_where_it_learned_them_and_errors_come_back():
    from alberta_data.blocks import Block
    from alberta_data.errors import NonFiniteError

    arrays = {"observations": np.ones((50, 3), np.float32), "targets": np.ones((50, 1), np.float32)}
    learners = [LinearLearner(IDBD(0.01 + n / 1000)) for n in range(20)]
    seen = []
    with Fold(learners, 3) as fold:
        found = fold.advance(Block(0, arrays), seen.append)
        assert sorted(map(tuple, (group.members for group in seen))) == sorted(tuple(g.members) for g in found)

        def fail(_):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            fold.advance(Block(50, arrays), fail)
    huge = {"observations": np.full((9, 3), 1e30, np.float32), "targets": np.ones((9, 1), np.float32)}
    seen.clear()
    with Fold([LinearLearner()], 3) as fold, pytest.raises(NonFiniteError):
        fold.advance(Block(0, huge), seen.append)
    assert len(seen) == 1


@pytest.mark.parametrize("interval", [1, 7, 1000])
def test_what_is_recorded_takes_room_for_the_steps_there_are(interval):
    from alberta_data.replay.groups import _rows, size_for
    from alberta_data.replay.rows import Rows

    rows = Rows(0, np.zeros((200, 5), np.float32), np.zeros((200, 1), np.float32))
    assert 200 / interval <= _rows(interval, size_for(rows, 200)) <= 4 * (256 / interval + 1)


STREAM, LEARNER = AbruptChangeStream(4), LinearLearner()
X, Y = np.ones((5, 4), np.float32), np.ones(5, np.float32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: run_learning_loop(LEARNER, STREAM, 5, jax.random.split(KEY, 2)), "key must be one key"),
        (lambda: STREAM.init(jax.random.split(KEY, 2)), "key must be one key"),
        (lambda: STREAM.init(None), "a key must be threefry2x32, got None"),
        (lambda: STREAM.init("x"), "a key must be threefry2x32, got 'x'"),
        (lambda: run_learning_loop_batched(LEARNER, STREAM, 5, KEY), "keys must be one a run"),
        (lambda: run_learning_loop_batched(LEARNER, STREAM, 5, jax.random.PRNGKey(0)), "keys must be one a run"),
        (lambda: run_learning_loop_batched(LEARNER, STREAM, 5, 5), "keys must be one a run, got 5"),
        (lambda: run_learning_loop_batched(LEARNER, STREAM, 5, []), "keys must be at least one"),
        (lambda: run_learning_loop(LEARNER, None, 5, KEY), "a stream must have feature_dim"),
        (lambda: run_learning_loop(None, STREAM, 5, KEY), "learner must have init"),
        (lambda: learn_from_trajectory(None, X, Y), "learner must have init"),
        (lambda: learn_from_trajectory(LEARNER, "datasets/a.zarr"), "open_dataset it"),
        (lambda: LEARNER.init("a"), "feature_dim must be a whole number"),
        (lambda: run_learning_loop(LEARNER, STREAM, 5, KEY, step_size_tracking=5), "whole number as interval"),
        (
            lambda: run_learning_loop(LEARNER, STREAM, 5, KEY, step_size_tracking=StepSizeTrackingConfig(1.5)),
            "whole number as interval",
        ),
        (
            lambda: run_learning_loop(
                LinearLearner(Rate(0.1)), STREAM, 5, KEY, step_size_tracking=StepSizeTrackingConfig(5)
            ),
            "of this package, got Rate",
        ),
        (lambda: run_learning_loop(LEARNER, SimpleNamespace(init=1), 5, KEY), "collect_trajectory"),
    ],
)
def test_what_is_no_key_no_stream_or_no_learner_is_refused_in_one_line(call, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
