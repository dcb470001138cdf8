"""Going on where a collection stopped."""

import numpy as np
import pytest

from alberta_data.environments import resuming
from alberta_data.environments.collection import Collection
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.environments.resuming import CannotResumeError, resumed

from .test_collection import gathered

STEPS = 120


def interrupted(parameters, at, seed=6, block_steps=10):
    """State and stored rows after `at` steps of a longer collection."""
    opened, pieces = Collection(parameters, seed), []
    for got in opened.blocks(10**6, block_steps):
        pieces.append(got)
        if got.block.stop >= at:
            break
    rows = {name: np.concatenate([c.block.arrays[name] for c in pieces]) for name in pieces[0].block.arrays}
    rows["final_observations"] = np.concatenate([c.final_observations for c in pieces])
    state = {name: np.array(value) for name, value in pieces[-1].state.items()}
    return rows, state


def continued(parameters, rows, state, seed=6):
    opened = Collection(parameters, seed)
    collector = resumed(opened, state, lambda name, start, stop: rows[name][start:stop])
    pieces = list(opened.blocks(STEPS, 25, collector))
    tails = [{**c.block.arrays, "final_observations": c.final_observations} for c in pieces]
    return {name: np.concatenate([rows[name], *(tail[name] for tail in tails)]) for name in rows}


RESUMABLE = [
    EnvironmentStream("CartPole-v1"),
    EnvironmentStream("CartPole-v1", policy="epsilon:0.4:1"),
    EnvironmentStream("Pendulum-v1", mode="next_state"),
    EnvironmentStream("FrozenLake-v1", {"is_slippery": True}, mode="next_state"),
    EnvironmentStream("Blackjack-v1", flatten="one-hot"),
    EnvironmentStream("alberta-test/Image-v0", policy="constant:1"),
    EnvironmentStream("alberta-test/Counting-v0"),
    EnvironmentStream("alberta-test/Spaces-v0", {"sees": "dict", "does": "components"}, flatten="one-hot"),
]


@pytest.mark.parametrize("look_back", [0, 20, 1000])
@pytest.mark.parametrize("at", [10, 60, 90])
@pytest.mark.parametrize("parameters", RESUMABLE, ids=lambda p: f"{p.env_id}-{p.policy}")
def test_an_interrupted_collection_ends_as_an_undisturbed_one(parameters, at, look_back, monkeypatch):
    monkeypatch.setattr(resuming, "_LOOK_BACK", look_back or 1)
    whole = gathered(parameters, 6, STEPS)
    found = continued(parameters, *interrupted(parameters, at))
    assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in whole.items()}


def test_from_step_0_there_is_nothing_to_play_again():
    opened = Collection(RESUMABLE[0], 6)
    state = opened.initial_state
    assert resumed(opened, state, None).step == 0


@pytest.mark.parametrize("at", [20, 40, 70])
def test_an_environment_that_remembers_beyond_a_reset_starts_over(at, monkeypatch):
    monkeypatch.setattr(resuming, "_LOOK_BACK", 10)
    parameters = EnvironmentStream("alberta-test/Remembering-v0", {"length": 10})
    rows, state = interrupted(parameters, at)
    with pytest.raises(CannotResumeError, match="start over: the same actions give other observations"):
        continued(parameters, rows, state)


def test_a_normalising_wrapper_starts_over(monkeypatch):
    monkeypatch.setattr(resuming, "_LOOK_BACK", 30)
    parameters = EnvironmentStream("CartPole-v1", wrappers=("NormalizeObservation",))
    rows, state = interrupted(parameters, 90)
    with pytest.raises(CannotResumeError, match="start over"):
        continued(parameters, rows, state)


def test_a_function_of_ones_own_starts_over():
    parameters = EnvironmentStream("CartPole-v1", policy=lambda x: 0)
    rows, state = interrupted(parameters, 20)
    with pytest.raises(CannotResumeError, match="its policy is a function"):
        continued(parameters, rows, state)


@pytest.mark.parametrize("name", ["observations", "rewards", "terminated", "final_observations", "actions"])
def test_rows_that_are_not_what_comes_out_again_start_over(name):
    rows, state = interrupted(RESUMABLE[0], 90)
    rows[name] = rows[name].copy()
    rows[name][-2] = 1 - rows[name][-2]
    with pytest.raises(CannotResumeError, match="it has to start over"):
        continued(RESUMABLE[0], rows, state)
