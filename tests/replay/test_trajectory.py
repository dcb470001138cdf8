import subprocess
import sys
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, NormalizedLinearLearner, UpdateResult
from alberta_data.learners import OnlineNormalizer as EMA
from alberta_data.replay import (
    Fold,
    learn_from_trajectory,
    learn_from_trajectory_normalized,
    metrics_to_dicts,
)

RNG = np.random.default_rng(3)
X = RNG.standard_normal((900, 4)).astype(np.float32)
Y = (X @ RNG.standard_normal((4, 3)) + 0.1).astype(np.float32)


class Stored:
    """What `open_dataset` returns, as far as learning goes: steps, blocks, and the names of the target columns."""

    steps = 900
    target_columns = ("left", "middle", "right")

    def __init__(self, arrays, sizes=(100, 256)):
        self.arrays, self.sizes = arrays, sizes

    def blocks(self, start, stop, names=None):
        turn = 0
        while start < stop:
            end = min(start + self.sizes[turn % len(self.sizes)], stop)
            yield Block(start, {name: self.arrays[name][start:end] for name in names})
            start, turn = end, turn + 1


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.mark.parametrize("learner", [LinearLearner(Autostep(), EMA()), LinearLearner(IDBD())], ids=str)
def test_a_dataset_gives_the_bits_of_its_arrays(learner):
    stored = Stored({"observations": X, "targets": Y[:, :1]})
    assert same(learn_from_trajectory(learner, stored), learn_from_trajectory(learner, X, Y[:, :1]))


def test_targets_may_be_one_number_a_row_and_inputs_jax_arrays_or_float64():
    learner = LinearLearner()
    expected = learn_from_trajectory(learner, X, Y[:, :1])
    assert same(learn_from_trajectory(learner, jnp.asarray(X), jnp.asarray(Y[:, 0])), expected)
    assert same(learn_from_trajectory(learner, X.astype(np.float64), Y[:, :1].astype(np.float64)), expected)


@pytest.mark.parametrize("learner", [LinearLearner(IDBD()), LinearLearner(LMS(), EMA())], ids=str)
def test_target_columns_are_learners_side_by_side(learner):
    state, metrics = learn_from_trajectory(learner, X, Y)
    assert metrics.shape == (900, 3, len(learner.columns))
    assert state.weights.shape == (3, 4)
    for column in range(3):
        alone_state, alone = learn_from_trajectory(learner, X, Y[:, column])
        assert np.array_equal(metrics[:, column], alone)
        assert same(jax.tree.map(lambda leaf, column=column: leaf[column], state), alone_state)


def test_states_of_several_columns_can_be_gone_on_from():
    learner = LinearLearner(Autostep())
    whole, metrics = learn_from_trajectory(learner, X, Y)
    state, first = learn_from_trajectory(learner, X[:321], Y[:321])
    state, second = learn_from_trajectory(learner, X[321:], Y[321:], state)
    assert same((state, np.concatenate([first, second])), (whole, metrics))


def test_one_column_can_be_asked_for_by_number_and_by_name():
    learner = LinearLearner(IDBD())
    expected = learn_from_trajectory(learner, X, Y[:, 2])
    stored = Stored({"observations": X, "targets": Y})
    assert same(learn_from_trajectory(learner, X, Y, target=2), expected)
    assert same(learn_from_trajectory(learner, stored, target="right"), expected)
    with pytest.raises(ArgumentError, match="left, middle, right"):
        learn_from_trajectory(learner, stored, target="up")
    with pytest.raises(ArgumentError, match="from 0 to 2, got 3"):
        learn_from_trajectory(learner, X, Y, target=3)


def test_every_gives_the_means_of_windows():
    learner = NormalizedLinearLearner(IDBD())
    _, all_steps = learn_from_trajectory_normalized(learner, X, Y)
    _, means = learn_from_trajectory_normalized(learner, X, Y, every=200)
    expected = [np.asarray(all_steps[first : first + 200], np.float64).mean(axis=0) for first in range(0, 900, 200)]
    np.testing.assert_allclose(means, np.stack(expected), rtol=1e-6)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="every"):
            learn_from_trajectory(learner, X, Y, every=bad)


@dataclass(frozen=True)
class Wrapped:
    """A learner of someone's own that happens to do what ours does."""

    inner: LinearLearner

    def init(self, feature_dim):
        return self.inner.init(feature_dim)

    def predict(self, state, x):
        return self.inner.predict(state, x)

    def update(self, state, x, y):
        return self.inner.update(state, x, y)


class WithOwnMetrics:
    """Not hashable by its parameters, metrics a dict."""

    __hash__ = None

    def init(self, feature_dim):
        return {"w": jnp.zeros(feature_dim), "n": jnp.int32(0)}

    def update(self, state, x, y):
        error = y[0] - jnp.sum(state["w"] * x)
        state = {"w": state["w"] + 0.01 * error * x, "n": state["n"] + 1}
        return UpdateResult(state, None, None, {"error": error, "weights": state["w"], "n": state["n"]})


@pytest.mark.parametrize("inner", [LinearLearner(IDBD()), LinearLearner(Autostep(), EMA())], ids=str)
def test_any_learner_goes_through_a_plain_loop(inner):
    state, metrics = learn_from_trajectory(Wrapped(inner), X, Y)
    expected_state, expected = learn_from_trajectory(inner, X, Y)
    np.testing.assert_allclose(metrics, expected, rtol=2e-3, atol=1e-4)
    assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, expected_state)


def test_a_learner_of_ones_own_has_its_own_metrics():
    state, metrics = learn_from_trajectory(WithOwnMetrics(), X, Y[:, 0])
    assert metrics["n"].tolist() == list(range(1, 901))
    assert np.array_equal(metrics["weights"][-1], state["w"])
    _, means = learn_from_trajectory(WithOwnMetrics(), X, Y[:, 0], every=300)
    assert means["weights"].shape == (3, 4)
    np.testing.assert_allclose(means["error"][1], np.mean(metrics["error"][300:600]), rtol=1e-5)


def test_a_plain_loop_gives_the_same_bits_for_any_blocks():
    one = learn_from_trajectory(WithOwnMetrics(), Stored({"observations": X, "targets": Y[:, :1]}, (1, 400, 7)))
    assert same(one, learn_from_trajectory(WithOwnMetrics(), X, Y[:, :1]))


TRANSITIONS = {
    "observations": X,
    "next_observations": np.roll(X, -1, axis=0),
    "rewards": Y[:, 0].astype(np.float64),
    "terminated": np.arange(900) % 50 == 49,
    "targets": np.full((900, 1), np.nan, np.float32),
}


@pytest.mark.parametrize("learner", [LinearLearner(IDBD()), LinearLearner(LMS(), EMA())], ids=str)
def test_td_learns_from_its_own_value_of_what_comes_next(learner):
    state, metrics = learn_from_trajectory(learner, Stored(TRANSITIONS), td=True, gamma=0.9)
    by_hand = learner.init(4)
    rows = []
    for t in range(200):
        value = float(learner.predict(by_hand, TRANSITIONS["next_observations"][t])[0])
        target = TRANSITIONS["rewards"][t] + (0.0 if TRANSITIONS["terminated"][t] else 0.9 * value)
        result = learner.update(by_hand, X[t], np.float32([target]))
        by_hand = result.state
        rows.append(result.metrics)
    np.testing.assert_allclose(metrics[:200], np.stack(rows), rtol=1e-3, atol=1e-5)
    assert same((state, metrics), learn_from_trajectory(learner, Stored(TRANSITIONS, (1, 333)), td=True, gamma=0.9))
    _, plain = learn_from_trajectory(Wrapped(learner), Stored(TRANSITIONS), td=True, gamma=0.9)
    np.testing.assert_allclose(plain, metrics, rtol=2e-3, atol=1e-4)


def test_td_in_a_grid_has_the_bits_of_the_learner_alone():
    learners = [LinearLearner(LMS(size)) for size in (0.01, 0.02, 0.03)]
    with Fold(learners, 4, gamma=0.9) as fold:
        (found,) = fold.advance(Block(0, TRANSITIONS))
    for place, learner in enumerate(learners):
        _, metrics = learn_from_trajectory(learner, Stored(TRANSITIONS), td=True, gamma=0.9)
        assert np.array_equal(found.metrics[:, :, place], metrics)


@pytest.mark.parametrize("gamma", [-0.1, 1.5, float("nan")])
def test_a_discount_out_of_range_is_refused(gamma):
    with pytest.raises(ArgumentError, match="gamma"):
        learn_from_trajectory(LinearLearner(), Stored(TRANSITIONS), td=True, gamma=gamma)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((X, None), "targets must be given"),
        ((X, Y[:5]), "one row a step"),
        ((X[:, 0], Y), "num_steps, feature_dim"),
        ((X[:0], Y[:0]), "at least one step"),
        ((Stored(TRANSITIONS), Y), "targets must be left out"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, said):
    with pytest.raises(ArgumentError, match=said):
        learn_from_trajectory(LinearLearner(), *arguments)


def test_td_without_transitions_is_refused():
    with pytest.raises(ArgumentError, match="td needs a dataset"):
        learn_from_trajectory(LinearLearner(), X, Y, td=True)
    with pytest.raises(ArgumentError, match="next_observations"), Fold([LinearLearner()], 4, gamma=0.9) as fold:
        fold.advance(Block(0, {"observations": X, "rewards": Y[:, 0]}))


def test_blocks_must_follow_each_other_and_have_the_features():
    with Fold([LinearLearner()], 4) as fold:
        fold.advance(Block(10, {"observations": X[:5], "targets": Y[:5]}))
        with pytest.raises(ArgumentError, match="expected step 15, got 16"):
            fold.advance(Block(16, {"observations": X[:5], "targets": Y[:5]}))
        with pytest.raises(ArgumentError, match="4 features, got 3"):
            fold.advance(Block(15, {"observations": X[:5, :3], "targets": Y[:5]}))


def test_an_empty_grid_is_refused():
    with pytest.raises(ArgumentError, match="at least one learner"):
        Fold([], 4)


def test_a_checkpoint_of_another_grid_is_refused():
    with Fold([LinearLearner()], 4) as fold, Fold([LinearLearner(IDBD())], 4) as other:
        with pytest.raises(ArgumentError, match="same learners"):
            other.restore(fold.checkpoint())
        with Fold([LinearLearner()], 5) as wider, pytest.raises(ArgumentError, match="other shapes"):
            wider.restore(fold.checkpoint())


def test_metrics_become_dicts():
    _, metrics = learn_from_trajectory(LinearLearner(LMS(), EMA()), X[:3], Y[:3, 0])
    rows = metrics_to_dicts(metrics, normalized=True)
    assert [list(row) for row in rows] == [["squared_error", "error", "mean_step_size", "normalizer_mean_var"]] * 3
    assert list(metrics_to_dicts(metrics)[0]) == ["squared_error", "error", "mean_step_size"]
    assert rows[2]["error"] == float(metrics[2, 1])
    with pytest.raises(ArgumentError, match="columns"):
        metrics_to_dicts(metrics[:, :3], normalized=True)


def test_a_process_forked_after_jax_had_started_says_so():
    code = (
        "import os, jax; from alberta_data.xla import pin; pin(); jax.numpy.ones(1).block_until_ready()\n"
        "from alberta_data.learners import LinearLearner\n"
        "from alberta_data.replay import learn_from_trajectory\n"
        "import numpy as np\n"
        "child = os.fork()\n"
        "if child:\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "try:\n"
        "    learn_from_trajectory(LinearLearner(), np.ones((3, 2)), np.ones(3))\n"
        "except Exception as err:\n"
        "    print(type(err).__name__, err, flush=True); os._exit(5)\n"
        "os._exit(0)\n"
    )
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 5
    assert found.stdout.startswith("UnavailableError")
