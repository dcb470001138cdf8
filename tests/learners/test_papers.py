"""The figures of Sutton (1992): R. S. Sutton, "Adapting bias by gradient descent", AAAI-92, section 4."""

import numpy as np
import pytest

from alberta_data.learners import IDBD, LMS, LinearLearner
from alberta_data.replay import Fold, run_learning_loop
from alberta_data.streams.sutton1 import SuttonExperiment1Stream

SETTLE, MEASURE = 20_000, 10_000


@pytest.fixture(autouse=True)
def _strict_shapes():
    """The streams broadcast on purpose."""
    return


@pytest.fixture(scope="module")
def errors():
    """Mean squared error after settling, of learners side by side over one sequence."""
    from alberta_data.generation import blocks

    def measure(rules, seed=0):
        sums = np.zeros(len(rules))
        with Fold([LinearLearner(rule) for rule in rules], 20) as fold:
            for block, _ in blocks(SuttonExperiment1Stream(), seed, SETTLE + MEASURE):
                for group in fold.advance(block):
                    late = group.metrics[max(SETTLE - block.start, 0) :, 0].astype(np.float64)
                    sums[group.members] += late.sum(axis=0)
        return sums / MEASURE

    return measure


def test_experiment_1_the_best_step_size_of_lms_gives_about_3_5(errors):
    found = errors([LMS(size) for size in (0.01, 0.03, 0.05)])
    assert found == pytest.approx([4.03, 3.49, 3.95], abs=0.15)
    assert found.argmin() == 1


def test_experiment_1_idbd_gives_about_1_5(errors):
    found = errors([IDBD(0.05, theta) for theta in (0.02, 0.01, 0.001)])
    assert found == pytest.approx([1.55, 1.58, 2.16], abs=0.1)


def test_experiment_2_the_step_sizes_find_the_relevant_inputs():
    state, _ = run_learning_loop(LinearLearner(IDBD(0.05, 0.001)), SuttonExperiment1Stream(), 250_000, 0)
    sizes = np.exp(np.asarray(state.optimizer_state.log_step_sizes))
    assert np.abs(sizes[:5] - 0.13).max() < 0.015
    assert sizes[5:].max() < 0.008
