"""The public iterators: the published bits, targets, counts, refusals."""

import json
from itertools import islice
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from alberta_data.blocks import TimeStep
from alberta_data.environments.gymnasium_stream import (
    GymnasiumStream,
    PredictionMode,
    TDStream,
    collect_trajectory,
    make_epsilon_greedy_policy,
    make_gymnasium_stream,
    make_random_policy,
)
from alberta_data.errors import ArgumentError
from alberta_data.learners.linear import LinearLearner
from alberta_data.learners.lms import LMS

from .small import Counting, Reusing, Spaces

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "gymnasium.json").read_text())


def rows(stream, n):
    steps = list(islice(stream, n))
    return np.array([s.observation for s in steps]), np.array([s.target for s in steps])


@pytest.mark.parametrize("name", REFERENCE)
def test_the_published_rows_come_out_bit_for_bit(name):
    case, stored = REFERENCE[name], np.load(DATA / "gymnasium.npz")
    arguments = {"mode": PredictionMode(case["mode"]), "seed": case["seed"]}
    arguments["include_action_in_features"] = case["include_action_in_features"]
    expected = stored[f"{name}/observations"], stored[f"{name}/targets"]
    stepped = rows(make_gymnasium_stream(case["env_id"], **arguments), case["num_steps"])
    whole = collect_trajectory(gymnasium.make(case["env_id"]), None, case["num_steps"], **arguments)
    for found in (stepped, whole):
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype == np.float32
            assert np.array_equal(ours, theirs)


REAL = ["CartPole-v1", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1", "FrozenLake-v1", "Taxi-v4"]


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("mode", PredictionMode)
@pytest.mark.parametrize("env_id", [*REAL, "CliffWalking-v1"])
def test_a_trajectory_is_what_the_iterator_gives(env_id, mode, include):
    stream = GymnasiumStream(gymnasium.make(env_id), mode, None, 0.9, include, 5)
    observations, targets = rows(stream, 250)
    assert observations.shape == (250, stream.feature_dim)
    assert targets.shape == (250, stream.target_dim)
    found = collect_trajectory(gymnasium.make(env_id), None, 250, mode, include, 5)
    assert all(isinstance(array, jax.Array) for array in found)
    assert np.array_equal(found[0], observations)
    assert np.array_equal(found[1], targets)
    policy = make_random_policy(gymnasium.make(env_id), 5)
    called = collect_trajectory(gymnasium.make(env_id), lambda x: policy(x), 250, mode, include, 5)
    assert np.array_equal(called[0], observations)


def test_the_stream_of_a_different_seed_differs():
    first, again, other = (rows(make_gymnasium_stream("CartPole-v1", seed=s), 50)[0] for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_stream_is_its_own_iterator_and_tells_its_settings():
    env = Counting()
    stream = GymnasiumStream(env, PredictionMode.VALUE, gamma=0.5, include_action_in_features=False)
    assert iter(stream) is stream
    assert (stream.feature_dim, stream.target_dim, stream.mode) == (2, 1, PredictionMode.VALUE)
    assert (stream.gamma, stream.include_action_in_features) == (0.5, False)
    assert (stream.step_count, stream.episode_count) == (0, 0)
    step = next(stream)
    assert isinstance(step, TimeStep)
    assert step.observation.dtype == step.target.dtype == np.float32
    rows(stream, 6)
    assert (stream.step_count, stream.episode_count) == (7, 2)
    assert env.seeds == [0, 1, 2]


def test_no_row_is_made_by_a_reset_and_the_last_target_of_an_episode_is_its_true_last_observation():
    stream = GymnasiumStream(Counting(3), PredictionMode.NEXT_STATE, include_action_in_features=False)
    observations, targets = rows(stream, 30)
    assert observations[:, 0].tolist() == [0, 1, 2] * 10
    assert targets[:, 0].tolist() == [1, 2, 3] * 10


@pytest.mark.parametrize(("ends", "target"), [("truncated", 10.0), ("terminated", 1.0), ("both", 1.0)])
def test_a_truncated_step_bootstraps_and_a_terminated_one_does_not(ends, target):
    for value in (lambda x: 10.0, lambda x: jnp.array(10.0), lambda x: np.array([10.0])):
        stream = GymnasiumStream(Counting(1, ends), PredictionMode.VALUE, gamma=0.9)
        stream.set_value_estimator(value)
        td = TDStream(Counting(1, ends), gamma=0.9)
        td.update_value_function(value)
        assert next(stream).target.tolist() == next(td).target.tolist() == [target]


def test_without_an_estimator_the_value_is_zero():
    assert next(GymnasiumStream(Counting(), PredictionMode.VALUE)).target.tolist() == [1.0]
    assert next(TDStream(Counting())).target.tolist() == [1.0]


def test_what_the_value_function_sees():
    seen = []
    stream = GymnasiumStream(Counting(), PredictionMode.VALUE, policy=lambda x: 1)
    stream.set_value_estimator(lambda x: seen.append(x) or 0.0)
    next(stream)
    td = TDStream(Counting(), policy=lambda x: 1, include_action_in_features=True)
    td.update_value_function(lambda x: seen.append(x) or 0.0)
    next(td)
    assert [x.tolist() for x in seen] == [[1, 1], [1, 1, 1]]
    assert all(x.dtype == np.float32 for x in seen)


def test_the_usage_of_td_streams():
    stream = TDStream(gymnasium.make("CartPole-v1"), gamma=0.9, seed=3)
    learner = LinearLearner(LMS(0.01))
    state = learner.init(stream.feature_dim)
    targets = []
    for step in islice(stream, 60):
        state = learner.update(state, step.observation, step.target).state
        stream.update_value_function(lambda x, state=state: learner.predict(state, x))
        targets.append(float(step.target[0]))
    assert (stream.feature_dim, stream.step_count) == (4, 60)
    assert stream.episode_count >= 1
    assert targets[0] == 1.0
    assert max(targets) > 1.0


def test_policies_see_a_float32_vector_and_may_answer_in_their_own_way():
    seen = []
    env = Spaces("multi", "double")
    stream = GymnasiumStream(env, policy=lambda x: seen.append(x) or [0.25, -0.5])
    step = next(stream)
    assert (seen[0].dtype, seen[0].shape) == (np.float32, (2,))
    assert isinstance(seen[0], np.ndarray)
    assert env.taken[0].dtype == np.float32
    assert step.observation[2:].tolist() == [0.25, -0.5]
    for answer in (1, np.int64(1), [1], jnp.array(1), np.array([1.0])):
        assert next(GymnasiumStream(Counting(), policy=lambda x, a=answer: a)).observation[2] == 1
    with pytest.raises(ArgumentError, match="action must be from 0 to 1"):
        next(GymnasiumStream(Counting(), policy=lambda x: 2))


def test_jnp_functions_are_policies():
    def policy(x):
        return jnp.argmax(jnp.stack([x[2], -x[2]]))

    found = collect_trajectory(gymnasium.make("CartPole-v1"), policy, 60)
    assert np.array_equal(found[0][:, 4], (np.asarray(found[0][:, 2]) < 0).astype(np.float32))


def test_epsilon_greedy_in_an_environment():
    env = gymnasium.make("CartPole-v1")
    policy = make_epsilon_greedy_policy(lambda x: 0, env, epsilon=0.5, seed=1)
    actions = np.asarray(collect_trajectory(env, policy, 200)[0][:, 4])
    assert 20 < actions.sum() < 90


def test_the_environment_may_reuse_its_arrays_and_the_caller_may_change_what_it_gets():
    for env in (Counting(5), Reusing(5)):
        found = collect_trajectory(env, None, 12, PredictionMode.NEXT_STATE, False)
        assert np.asarray(found[0])[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
        assert np.asarray(found[1])[:, 0].tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]
    stream = GymnasiumStream(Reusing(50), PredictionMode.NEXT_STATE, include_action_in_features=False)
    for i, step in enumerate(islice(stream, 20)):
        assert step.observation[0] == i
        assert step.target[0] == i + 1
        step.observation[:] = step.target[:] = -1


@pytest.mark.parametrize("make", [GymnasiumStream, TDStream, lambda env: collect_trajectory(env, None, 5)])
def test_spaces_that_will_not_do_are_refused_before_the_first_step(make):
    for sees, does, message in (
        ("dict", "two", "Unsupported space type: "),
        ("text", "two", r"Unsupported space type: Text at observation\['say'\]"),
        ("discrete", "unbounded", "Unsupported action space: "),
    ):
        env = Spaces(sees, does)
        with pytest.raises(ValueError, match=f"^{message}"):
            make(env)
        assert env.taken == []


def test_an_unbounded_action_only_needs_a_policy():
    stream = GymnasiumStream(Spaces("discrete", "unbounded"), policy=lambda x: [5.0, -7.0])
    assert next(stream).observation[1:].tolist() == [5.0, -7.0]


@pytest.mark.parametrize("gamma", [float("nan"), 1.5, -0.1])
def test_gamma_is_from_0_to_1(gamma):
    for make in (GymnasiumStream, TDStream):
        with pytest.raises(ArgumentError, match=r"^gamma must be"):
            make(Counting(), gamma=gamma)


def test_what_is_no_single_environment_is_refused():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(ArgumentError, match="vector"):
        GymnasiumStream(vector)
    with pytest.raises(ArgumentError, match="Autoreset"):
        GymnasiumStream(gymnasium.wrappers.Autoreset(Counting()))
    with pytest.raises(ArgumentError, match="mode must be one of reward, next_state, value"):
        GymnasiumStream(Counting(), "rewards")
    with pytest.raises(ArgumentError, match="num_steps"):
        collect_trajectory(Counting(), None, 0)
    with pytest.raises(ArgumentError, match="seed"):
        collect_trajectory(Counting(), None, 1, seed=-1)


def test_multi_discrete_actions_are_features_one_a_component():
    env = Spaces("multi", "components")
    found = collect_trajectory(env, None, 20, seed=4)
    assert found[0].shape == (20, 4)
    assert np.array_equal(found[0][:, 2:], np.array(env.taken, np.float32))
    assert isinstance(env.action_space, spaces.MultiDiscrete)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_gymnasium_stream("Nope-v7"), "Nope"),
        (lambda: make_gymnasium_stream("CartPole-v1", bogus=1), "bogus"),
        (lambda: make_gymnasium_stream("CartPole-v1", policy=3), "policy must be"),
        (lambda: make_gymnasium_stream("CartPole-v1").set_value_estimator(3), "must be a function"),
        (lambda: TDStream(gymnasium.make("CartPole-v1")).update_value_function("x"), "must be a function"),
    ],
)
def test_what_is_no_environment_policy_or_value_is_refused_in_one_line(call, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
