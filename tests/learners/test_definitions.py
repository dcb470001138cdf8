import json
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import pytest

from alberta_data import learners
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, NormalizedLinearLearner
from alberta_data.learners import OnlineNormalizer as EMA
from alberta_data.learners import WelfordNormalizer as Welford
from alberta_data.replay import learn_from_trajectory
from tests.learners import formulas

DATA = Path(__file__).parents[1] / "data"
REFERENCE = np.load(DATA / "learners.npz")
CONFIGURATIONS = json.loads((DATA / "learners.json").read_text())
KEPT = np.r_[0:400, 1950:2000]
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


def made(entry):
    if entry is None:
        return None
    return getattr(learners, entry["type"])(**{name: value for name, value in entry.items() if name != "type"})


def scanned(learner, observations, targets):
    """Learn as a user would: a scan of one's own over `update`."""

    def step(state, pair):
        result = learner.update(state, *pair)
        return result.state, result.metrics

    start = learner.init(observations.shape[1])
    return jax.jit(lambda *pairs: jax.lax.scan(step, start, pairs))(observations, targets)


@pytest.mark.parametrize("way", [scanned, learn_from_trajectory], ids=["scan", "own loop"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_published_rows_are_met(name, way):
    entry = CONFIGURATIONS[name]
    learner = LinearLearner(made(entry["optimizer"]), made(entry["normalizer"]))
    state, metrics = way(learner, REFERENCE["observations"], REFERENCE["targets"])
    published = REFERENCE[f"{name}/metrics"].copy()
    if isinstance(learner.optimizer, LMS):
        published[:, 2] = learner.optimizer.step_size  # the published package reports 0
    np.testing.assert_allclose(np.asarray(metrics)[KEPT], published, **CLOSE)
    np.testing.assert_allclose(state.weights, REFERENCE[f"{name}/weights"], **CLOSE)
    np.testing.assert_allclose(state.bias, REFERENCE[f"{name}/bias"], **CLOSE)


@pytest.mark.parametrize("normalizer", [None, EMA(1e-6, 0.95), Welford()], ids=lambda rule: getattr(rule, "name", "-"))
@pytest.mark.parametrize(
    "optimizer", [LMS(0.02), IDBD(0.03, 0.02), Autostep(0.05, 0.03, 50.0)], ids=lambda rule: rule.name
)
def test_the_definitions_are_met_in_float64(optimizer, normalizer):
    rng = np.random.default_rng(11)
    x = rng.normal(0.3, [1.0, 0.5, 2.0], (300, 3)).astype(np.float32)
    y = (x @ [1.0, -2.0, 0.5] + np.sin(np.arange(300) / 40) + 0.2 * rng.normal(size=300)).astype(np.float32)
    rules = [
        None if rule is None else getattr(formulas, type(rule).__name__)(3, **asdict(rule))
        for rule in (optimizer, normalizer)
    ]
    second = formulas.Learner(3, *rules)
    expected = np.array([second.step(*pair) for pair in zip(x, y, strict=True)])
    state, metrics = learn_from_trajectory(LinearLearner(optimizer, normalizer), x, y)
    np.testing.assert_allclose(metrics, expected, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(state.weights, second.w, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(state.bias, second.b, rtol=2e-3, atol=2e-4)


def test_a_linear_learner_with_a_normalizer_learns_what_the_normalized_one_does():
    x, y = REFERENCE["observations"][:300], REFERENCE["targets"][:300]
    plain, plain_metrics = learn_from_trajectory(LinearLearner(IDBD(), EMA()), x, y)
    other, other_metrics = learn_from_trajectory(NormalizedLinearLearner(IDBD(), EMA()), x, y)
    assert np.array_equal(plain_metrics, other_metrics)
    assert all(map(np.array_equal, jax.tree.leaves(plain), jax.tree.leaves(other)))


def test_the_mean_step_size_of_lms_is_its_step_size_in_every_bit():
    for features in (1, 7, 20, 300):
        _, metrics = learn_from_trajectory(LinearLearner(LMS(0.003)), np.ones((5, features)), np.zeros(5))
        assert (np.asarray(metrics)[:, 2] == np.float32(0.003)).all()


def test_idbd_keeps_its_step_sizes_within_their_bounds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3)).astype(np.float32) * 0.3
    state, _ = learn_from_trajectory(LinearLearner(IDBD(0.01, 5.0)), x, x @ np.ones(3, np.float32))
    beta = np.asarray(state.optimizer_state.log_step_sizes)
    assert ((beta >= -10) & (beta <= 2)).all()
    assert 1e-6 <= state.optimizer_state.bias_step_size <= 1


def test_autostep_takes_no_step_that_overshoots():
    rng = np.random.default_rng(0)
    x = 30 * rng.normal(size=(50, 4)).astype(np.float32)
    state = (learner := LinearLearner(Autostep(1.0, 0.1))).init(4)
    for row in x:
        state = learner.update(state, row, np.float32([10.0])).state
        sizes = state.optimizer_state
        assert float(np.sum(sizes.step_sizes * row**2) + sizes.bias_step_size) <= 1.0 + 1e-5
