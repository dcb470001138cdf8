"""One learner, many ways: alone, in a lane, in blocks of any length, resumed, from arrays. Every bit is the same."""

import hashlib
import itertools
import json
import os
from pathlib import Path

import jax
import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, OnlineNormalizer, WelfordNormalizer
from alberta_data.replay import Fold, learn_from_trajectory
from alberta_data.xla import effective_isa

DIGESTS = Path(__file__).parents[1] / "data" / "learner_bits.json"
STEPS = 1300
OPTIMIZERS = {
    "lms": [(0.001,), (0.003,), (0.01,)],
    "idbd": [(0.003, 0.01), (0.01, 0.003), (0.01, 0.001), (0.02, 0.01), (0.005, 0.02)],
    "autostep": [(0.03, 0.01), (0.01, 0.01, 100.0)],
}
NORMALIZERS = {"none": None, "ema": OnlineNormalizer(decay=0.97), "welford": WelfordNormalizer()}
EVERY = list(itertools.product(OPTIMIZERS, NORMALIZERS))
DIAGONALS = [EVERY[0::4], EVERY[1:6:4] + EVERY[6:7], EVERY[2:7:2]]
CASES = [
    *((20, *case) for case in EVERY),
    *((width, *case) for width, cases in zip((1, 3, 5, 64, 300, 100), DIAGONALS * 2, strict=True) for case in cases),
]


def trajectory(features):
    """Return badly scaled inputs and a drifting target: many step-sizes change, some are clipped."""
    rng = np.random.default_rng(features)
    x = rng.standard_normal((STEPS, features)) * np.exp(rng.standard_normal(features)) / np.sqrt(features)
    w = rng.standard_normal(features) + np.outer(np.arange(STEPS) / 500, rng.standard_normal(features))
    y = (x * w).sum(axis=1) + 0.3 * rng.standard_normal(STEPS) + 2.0
    return x.astype(np.float32), y.astype(np.float32)[:, None]


def grid(features, optimizer, normalizer):
    """Return a case's learners; with many features the steps are smaller, so that all stay finite."""
    rule = {"lms": LMS, "idbd": IDBD, "autostep": Autostep}[optimizer]
    shrink = 1.0 if features < 64 else 0.1
    members = [rule(size * shrink, *rest) for size, *rest in OPTIMIZERS[optimizer]]
    return [LinearLearner(member, NORMALIZERS[normalizer]) for member in members]


def cuts(sizes, start=0):
    """Yield first and last step of blocks whose sizes go round."""
    for size in itertools.cycle(sizes):
        stop = min(start + size, STEPS)
        yield start, stop
        if stop == STEPS:
            return
        start = stop


def learned(learners, x, y, sizes=(4096,), resume_at=None):
    """Return every member's metrics and packed-out state."""
    metrics = [[] for _ in learners]
    fold = Fold(learners, x.shape[1])
    with fold:
        for start, stop in cuts(sizes):
            if resume_at is not None and start >= resume_at:
                checkpoint = fold.checkpoint()
                fold = Fold(learners, x.shape[1])
                fold.restore(checkpoint)
                resume_at = None
            for group in fold.advance(Block(start, {"observations": x[start:stop], "targets": y[start:stop]})):
                for lane, member in enumerate(group.members):
                    metrics[member].append(group.metrics[:, :, lane])
    return [(np.concatenate(parts), state) for parts, state in zip(metrics, fold.states(), strict=True)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def named(case):
    return "-".join(map(str, case))


@pytest.fixture(scope="module")
def together():
    """The metrics and states of every case as a grid in one block, made once."""
    made = {}

    def find(case):
        if case not in made:
            x, y = trajectory(case[0])
            made[case] = learned(grid(*case), x, y)
        return made[case]

    return find


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_member_of_a_grid_has_the_bits_of_the_learner_alone(case, together):
    x, y = trajectory(case[0])
    for learner, found in zip(grid(*case), together(case), strict=True):
        assert same(learned([learner], x, y)[0], found)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_blocks_of_any_length_give_the_same_bits(case, together):
    x, y = trajectory(case[0])
    learner = grid(*case)[0]
    for sizes in ((501,), (7, 1, 250, 42), (1, 299)):
        assert same(learned([learner], x, y, sizes)[0], together(case)[0])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_arrays_in_python_give_the_same_bits(case, together):
    x, y = trajectory(case[0])
    state, metrics = learn_from_trajectory(grid(*case)[-1], x, y)
    assert same((metrics, state), together(case)[-1])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_update_called_step_by_step_gives_the_same_bits(case, together):
    x, y = trajectory(case[0])
    learner = grid(*case)[0]
    metrics = np.asarray(together(case)[0][0])
    state = learner.init(case[0])
    for t in range(60):
        state, _, _, row = learner.update(state, x[t], y[t])
        assert np.array_equal(row, metrics[t]), t


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_state_handed_on_gives_the_same_bits(case, together):
    x, y = trajectory(case[0])
    learner = grid(*case)[0]
    state, first = learn_from_trajectory(learner, x[:777], y[:777])
    state, second = learn_from_trajectory(learner, x[777:], y[777:], state)
    assert same((np.concatenate([first, second]), state), together(case)[0])


@pytest.mark.parametrize("case", CASES[:9], ids=named)
def test_a_resumed_grid_gives_the_same_bits(case, together):
    x, y = trajectory(case[0])
    assert same(learned(grid(*case), x, y, (300,), resume_at=600), together(case))


def test_learners_of_all_kinds_go_together_with_the_same_bits(together):
    x, y = trajectory(20)
    everyone = [learner for case in EVERY for learner in grid(20, *case)]
    alone = [found for case in EVERY for found in together((20, *case))]
    assert same(learned(everyone, x, y), alone)


@pytest.mark.parametrize("members", [1, 2, 3, 8, 9, 17])
def test_the_number_of_lanes_changes_no_bit(members, together):
    x, y = trajectory(5)
    rules = [Autostep(0.01 * (1 + place), 0.01) for place in range(members)]
    found = learned([LinearLearner(rule) for rule in rules], x, y)
    assert same(found[-1], learned([LinearLearner(rules[-1])], x, y)[0])


def test_a_users_own_scan_agrees_to_rounding(together):
    x, y = trajectory(20)
    for case in EVERY:
        learner = grid(20, *case)[0]

        def step(state, pair, learner=learner):
            result = learner.update(state, *pair)
            return result.state, result.metrics

        _, metrics = jax.lax.scan(step, learner.init(20), (x, y))
        np.testing.assert_allclose(metrics, together((20, *case))[0][0], rtol=2e-3, atol=1e-4)


def digest(found):
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(found):
        total.update(np.ascontiguousarray(leaf).tobytes())
    return total.hexdigest()


@pytest.mark.skipif(effective_isa() != "AVX2", reason="the bits are promised for AVX2")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_bits_are_those_of_every_other_python_and_jax(case, together):
    found = digest(together(case))
    if os.environ.get("ALBERTA_DATA_WRITE_GOLDEN"):  # how the file was made
        known = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
        DIGESTS.write_text(json.dumps({**known, named(case): found}, indent=1, sort_keys=True) + "\n")
    assert found == json.loads(DIGESTS.read_text())[named(case)]
