"""Numbers that must stay numbers: a finite state is kept, or the run stops with the step."""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.blocks import Block, TimeStep
from alberta_data.errors import NonFiniteError
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, OnlineNormalizer, UpdateResult, WelfordNormalizer
from alberta_data.replay import Fold, learn_from_trajectory, run_learning_loop_batched

RULES = [LMS(0.001), IDBD(0.001), Autostep()]
SCALES = [None, OnlineNormalizer(), WelfordNormalizer()]
STEPS, BAD = 700, 333


def rows(features, name):
    """Return a quiet trajectory with one case of `cases.md` in it."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((STEPS, features)).astype(np.float32) * 0.3
    y = x.sum(axis=1, keepdims=True)
    if name == "overflow":
        x[BAD], y[BAD] = 1e20, 1e20
    elif name == "zero feature, infinite error":
        x[BAD], y[BAD] = 1e30, 3e38
        x[BAD, 0] = 0.0
        x[BAD - 1] = 1e12
    elif name == "large everywhere":
        x[BAD] = 1e19
    elif name == "constant":
        x[:] = 0.7
    elif name == "not a number":
        x[BAD, -1] = np.nan
    elif name == "infinite target":
        y[BAD] = np.inf
    return x, y


def finite(state):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def step_by_step(learner, x, y):
    """Return the first step around the bad row after which the state is not finite; None if there is none."""
    state, _ = learn_from_trajectory(learner, x[: BAD - 2], y[: BAD - 2])
    for t in range(BAD - 2, BAD + 6):
        state = learner.update(state, x[t], y[t]).state
        if not finite(state):
            return t
    return None


CASES = [
    (3, "overflow"),
    (3, "zero feature, infinite error"),
    (512, "large everywhere"),
    (3, "constant"),
    (3, "not a number"),
    (3, "infinite target"),
]


@pytest.mark.parametrize("scale", SCALES, ids=lambda rule: getattr(rule, "name", "none"))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(("features", "name"), CASES)
def test_a_state_stays_finite_or_the_run_stops_with_the_step(features, name, rule, scale):
    learner = LinearLearner(rule, scale)
    x, y = rows(features, name)
    expected = step_by_step(learner, x, y)
    if expected is None:
        state, _ = learn_from_trajectory(learner, x, y)
        assert finite(state)
        return
    with pytest.raises(NonFiniteError, match=f"step {expected}:") as found:
        learn_from_trajectory(learner, x, y)
    assert found.value.step == expected
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_constant_observation_kills_no_normalised_learner(rule):
    x, y = rows(3, "constant")
    for scale in SCALES[1:]:
        state, metrics = learn_from_trajectory(LinearLearner(rule, scale), x, y)
        assert finite(state)
        assert np.isfinite(metrics).all()


def test_a_grid_goes_on_without_the_member_and_marks_its_step():
    x, y = rows(3, "quiet")
    learners = [LinearLearner(LMS(size)) for size in (0.01, 30.0, 0.02, 100.0)] + [LinearLearner(IDBD())]
    lone = {}
    for place in (1, 3):
        with pytest.raises(NonFiniteError) as found:
            learn_from_trajectory(learners[place], x, y)
        lone[place] = found.value.step
    with Fold(learners, 3) as fold:
        for start in range(0, STEPS, 50):
            fold.advance(Block(start, {"observations": x[start : start + 50], "targets": y[start : start + 50]}))
        assert fold.stopped == lone
        for place in (0, 2, 4):
            state, _ = learn_from_trajectory(learners[place], x, y)
            assert all(map(np.array_equal, jax.tree.leaves(state), jax.tree.leaves(fold.states()[place])))


def test_a_grid_without_a_survivor_stops():
    x, y = rows(3, "quiet")
    with Fold([LinearLearner(LMS(30.0)), LinearLearner(LMS(100.0))], 3) as fold, pytest.raises(NonFiniteError) as found:
        fold.advance(Block(0, {"observations": x, "targets": y}))
    assert found.value.step == max(fold.stopped.values())
    assert sorted(fold.stopped) == [0, 1]


def test_the_dead_stay_marked_over_a_checkpoint():
    x, y = rows(3, "quiet")
    learners = [LinearLearner(LMS(0.01)), LinearLearner(LMS(100.0))]
    with Fold(learners, 3) as fold:
        fold.advance(Block(0, {"observations": x, "targets": y}))
        with Fold(learners, 3) as resumed:
            resumed.restore(fold.checkpoint())
            assert resumed.stopped == fold.stopped != {}


class Fragile:
    """A learner of someone's own: `best` starts infinite on purpose, `w` must stay finite."""

    def init(self, feature_dim):
        return {"w": jnp.zeros(feature_dim), "best": jnp.float32(jnp.inf)}

    def update(self, state, x, y):
        error = y[0] - jnp.sum(state["w"] * x)
        state = {"w": state["w"] + 0.1 * error * x, "best": jnp.minimum(state["best"], error**2)}
        return UpdateResult(state, None, error, {"error": error})


def test_a_learner_of_ones_own_stops_too_and_may_keep_an_infinity_it_began_with():
    learner = Fragile()
    x, y = rows(3, "quiet")
    _, metrics = learn_from_trajectory(learner, x * 0, y)
    assert np.isfinite(metrics["error"]).all()
    x[BAD] = np.nan
    with pytest.raises(NonFiniteError) as found:
        learn_from_trajectory(learner, x, y)
    assert found.value.step == BAD


class Burst(NamedTuple):
    """A stream whose target is 1e38 from the seventh step on for odd keys."""

    feature_dim: int = 2

    def init(self, key):
        words = jax.random.key_data(key)
        return (words[-1] % 2).astype(jnp.float32), jnp.int32(0)

    def step(self, state, idx):
        odd, t = state
        x = jnp.full(2, 0.5, jnp.float32) * jnp.where(t % 2 == 0, 1.0, -1.0)
        loud = jnp.where((t > 6) & (odd > 0), 1e38, 1.0)
        return TimeStep(x * loud, jnp.reshape(x[0] * loud, (1,))), (odd, t + 1)


def test_seeds_that_are_lost_are_named_and_the_others_go_on():
    keys = [jax.random.key(seed) for seed in (0, 1, 2)]
    with pytest.warns(UserWarning, match="key 1 at step 7"):
        found = run_learning_loop_batched(LinearLearner(LMS(0.1)), Burst(), 50, keys)
    assert np.isfinite(found.metrics[0]).all()
    assert np.isnan(found.metrics[1]).all()
    with warnings.catch_warnings(), pytest.raises(NonFiniteError):
        run_learning_loop_batched(LinearLearner(LMS(0.1)), Burst(), 50, keys[1:2])
