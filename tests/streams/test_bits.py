"""One way or another, the same bits: step, scan, eager, lanes, blocks of any length, both supported ends of jax."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from alberta_data import generation
from alberta_data.dataset import create_dataset
from alberta_data.streams.registry import STREAMS
from alberta_data.streams.scaled import ScaledStreamWrapper, even_scales
from tests.streams.making import rows, with_features

IDS = json.loads((Path(__file__).parent.parent / "data" / "ids.json").read_text())
FEATURES = (1, 3, 5, 20, 300)


def scanned(stream, seed, steps):
    def one(state, index):
        step, state = stream.step(state, index)
        return state, step

    state, out = jax.lax.scan(one, generation.initial_state(stream, seed), np.arange(steps))
    return np.asarray(out.observation), np.asarray(out.target), generation.state_arrays(state)


def assert_same(a, b):
    assert np.array_equal(a[0], b[0])
    assert np.array_equal(a[1], b[1])
    assert all(np.array_equal(a[2][name], b[2][name]) for name in a[2])


@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("name", STREAMS)
def test_a_scan_over_step_and_blocks_of_any_length_agree_in_every_bit_of_rows_and_state(name, features):
    stream = with_features(name, features)
    expected = scanned(stream, 5, 2100)
    for length in (7, 501, 4096):
        assert_same(rows(stream, 5, 2100, block_steps=length), expected)


@pytest.mark.parametrize("name", STREAMS)
def test_steps_taken_one_by_one_and_blocks_of_one_agree_with_a_long_block(name):
    stream = with_features(name, 5)
    observations, targets, _ = rows(stream, 2, 60)
    state = generation.initial_state(stream, 2)
    for index in range(60):
        step, state = stream.step(state, index)
        assert np.array_equal(step.observation, observations[index])
        assert np.array_equal(step.target, targets[index])
    assert np.array_equal(rows(stream, 2, 60, block_steps=1)[0], observations)


@pytest.mark.parametrize("name", STREAMS)
def test_lanes_of_a_vmap_agree_with_each_seed_alone(name):
    stream = with_features(name, 3)

    def run(state):
        return jax.lax.scan(lambda s, i: stream.step(s, i)[::-1], state, np.arange(50))[1]

    states = [generation.initial_state(stream, seed) for seed in range(4)]
    together = jax.vmap(run)(jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *states))
    for lane in range(4):
        observations, targets, _ = rows(stream, lane, 50)
        assert np.array_equal(together.observation[lane], observations)
        assert np.array_equal(together.target[lane], targets)


def test_two_streams_of_one_class_interleaved_are_each_as_if_alone():
    one, other = with_features("abrupt", 3), STREAMS["abrupt"](feature_dim=3, change_interval=5)
    states = [generation.initial_state(one, 0), generation.initial_state(other, 0)]
    seen = ([], [])
    for _ in range(20):
        for number, stream in enumerate((one, other)):
            step, states[number] = stream.step(states[number])
            seen[number].append(np.asarray(step.target))
    assert np.array_equal(np.stack(seen[0]), rows(one, 0, 20)[1])
    assert np.array_equal(np.stack(seen[1]), rows(other, 0, 20)[1])


def test_a_wrapped_stream_agrees_in_step_and_block_and_is_the_inner_one_times_its_scales():
    inner = with_features("random-walk", 5)
    stream = ScaledStreamWrapper(inner, even_scales(5, 0.3, 7, True))
    got = rows(stream, 1, 500, block_steps=77)
    assert_same(got, scanned(stream, 1, 500))
    plain = rows(inner, 1, 500)
    assert np.array_equal(got[0], plain[0] * np.asarray(stream.feature_scales))
    assert np.array_equal(got[1], plain[1])


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", STREAMS)
def test_the_id_of_a_stream_is_the_one_that_every_supported_python_has_made(name, features, tmp_path):
    made = create_dataset(with_features(name, features), steps=5000, seed=3, path=tmp_path / "a.zarr", block_steps=501)
    assert made.id == IDS[f"{name}-{features}"]
