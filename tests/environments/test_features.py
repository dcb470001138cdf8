"""What replay makes of stored rows, against the iterators."""

from itertools import islice

import gymnasium
import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.environments.collection import collect_blocks
from alberta_data.environments.features import (
    episodes_before,
    learning_block,
    needs_next,
    transition_block,
    with_next_observations,
)
from alberta_data.environments.gymnasium_stream import GymnasiumStream, TDStream
from alberta_data.environments.parameters import EnvironmentStream, PredictionMode
from alberta_data.errors import ArgumentError

from .test_collection import gathered

STEPS = 150


def stored_blocks(rows, sizes, start=0, stop=STEPS):
    at = start
    while at < stop:
        size = min(next(sizes), stop - at)
        yield Block(at, {k: v[at : at + size] for k, v in rows.items() if k != "final_observations"})
        at += size


def sizes_of(n):
    while True:
        yield n


def joined(blocks):
    blocks = list(blocks)
    return {name: np.concatenate([b.arrays[name] for b in blocks]) for name in blocks[0].arrays}


def replayed(rows, size, **place):
    finals = rows["final_observations"]
    asked = []
    after = place.pop("after", None)
    episode = place.pop("episode", 0)
    blocks = stored_blocks(rows, sizes_of(size), **place)
    yield from with_next_observations(blocks, lambda a, b: asked.append((a, b)) or finals[a:b], episode, after)
    assert [a for a, _ in asked[1:]] == [b for _, b in asked[:-1]]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("mode", PredictionMode)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "Taxi-v4", "FrozenLake-v1", "alberta-test/Image-v0"])
def test_replay_in_any_mode_is_what_the_stream_yields(env_id, mode, include, size):
    rows = gathered(EnvironmentStream(env_id), 8, STEPS)
    steps = list(islice(GymnasiumStream(gymnasium.make(env_id), mode, None, 0.99, include, 8), STEPS))
    blocks = replayed(rows, size) if needs_next(mode) else stored_blocks(rows, sizes_of(size))
    found = joined(learning_block(block, mode, include) for block in blocks)
    assert np.array_equal(found["observations"], [s.observation for s in steps])
    assert np.array_equal(found["targets"], [s.target for s in steps])
    assert found["observations"].dtype == found["targets"].dtype == np.float32


def test_the_stored_targets_are_those_of_the_own_mode():
    for mode in PredictionMode:
        rows = gathered(EnvironmentStream("Taxi-v4", mode=mode), 8, STEPS, 11)
        steps = islice(GymnasiumStream(gymnasium.make("Taxi-v4"), mode, seed=8), STEPS)
        assert np.array_equal(rows["targets"], [s.target for s in steps])


def test_a_part_of_a_dataset_replays_as_that_part_of_the_whole():
    rows = gathered(EnvironmentStream("CartPole-v1"), 8, STEPS)
    whole = joined(replayed(rows, 40))["next_observations"]
    for start, stop in ((0, 60), (33, 90), (33, 34), (100, STEPS)):
        episode = episodes_before([{k: v[:start] for k, v in rows.items() if k in ("terminated", "truncated")}])
        after = rows["observations"][stop] if stop < STEPS else None
        part = joined(replayed(rows, 13, start=start, stop=stop, episode=episode, after=after))
        assert np.array_equal(part["next_observations"], whole[start:stop])


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("ends", ["terminated", "truncated", "both"])
def test_td_targets_from_transitions_are_those_of_a_td_stream(ends, include):
    arguments = {"ends": ends, "length": 4}
    rows = gathered(EnvironmentStream("alberta-test/Counting-v0", arguments), 2, STEPS)
    stream = TDStream(gymnasium.make("alberta-test/Counting-v0", **arguments), None, 0.9, include, 2)
    stream.update_value_function(lambda x: float(np.sum(x)))
    steps = list(islice(stream, STEPS))
    found = joined(transition_block(block, include) for block in replayed(rows, 9))
    value = np.where(found["terminated"], 0, found["next_observations"].sum(axis=1))
    assert np.array_equal(found["observations"], [s.observation for s in steps])
    assert np.allclose(found["rewards"] + 0.9 * value, np.array([s.target[0] for s in steps]), rtol=1e-6)


def test_a_truncated_step_has_the_final_observation_behind_it():
    rows = gathered(EnvironmentStream("alberta-test/Counting-v0", {"ends": "truncated"}), 0, 7)
    found = joined(transition_block(block, False) for block in replayed(rows, 2, stop=7))
    assert found["next_observations"][:, 0].tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert not found["terminated"].any()


def test_one_column_of_the_targets():
    rows = gathered(EnvironmentStream("Pendulum-v1"), 0, STEPS)
    block = next(replayed(rows, 1000))
    whole = learning_block(block, "next_state", False).targets
    assert np.array_equal(learning_block(block, "next_state", False, column=2).targets, whole[:, 2:])
    with pytest.raises(ArgumentError, match="column from 0 to 2, got 3"):
        learning_block(block, "next_state", False, column=3)


def test_replay_holds_one_block_back_and_no_more():
    made = []

    def blocks():
        for got in collect_blocks(EnvironmentStream("alberta-test/Counting-v0"), 0, 50, 5):
            made.append(got.block.start)
            yield got.block

    replay = with_next_observations(blocks(), lambda a, b: np.zeros((b - a, 2), np.float32))
    assert next(replay).start == 0
    assert made == [0, 5]
