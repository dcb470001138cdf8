"""What the definitions say, against formulas written out here."""

import json

import jax
import numpy as np
import pytest

from alberta_data import generation, keys
from alberta_data.errors import ArgumentError, RefusedError, UnavailableError
from alberta_data.streams import registry
from alberta_data.streams.base import MAX_STEPS, ScanStream
from alberta_data.streams.scaled import ScaledStreamWrapper, even_scales, make_scale_range
from alberta_data.streams.synthetic import (
    AbruptChangeStream,
    CyclicStream,
    DynamicScaleShiftStream,
    PeriodicChangeState,
    PeriodicChangeStream,
    RandomWalkState,
    RandomWalkStream,
    ScaleDriftStream,
    SuttonExperiment1Stream,
)
from tests.streams.making import rows, with_features


def hidden(stream, seed, steps, name="true_weights"):
    parts = generation.blocks(stream, seed, steps, hidden=True)
    return np.concatenate([block.arrays[name] for block, _ in parts])


@pytest.mark.parametrize("name", registry.STREAMS)
def test_every_stream_follows_the_protocol_and_its_spec_gives_it_back(name):
    stream = with_features(name, 6)
    assert isinstance(stream, ScanStream)
    assert stream.feature_dim == 6
    spec = json.loads(json.dumps(stream.spec(4, 100)))
    assert list(spec) == ["kind", "stream", "version", "parameters", "prng", "seed", "steps"]
    assert registry.from_spec(spec) == stream
    assert hash(registry.from_spec(spec)) == hash(stream)
    assert stream.formula
    assert stream.paper


@pytest.mark.parametrize("name", registry.STREAMS)
def test_targets_are_the_hidden_weights_times_the_features_plus_noise_of_its_size(name):
    stream = with_features(name, 8)
    observations, targets, _ = rows(stream, 0, 4000)
    features = observations.astype(np.float64)
    if name == "sutton1":
        signs = hidden(stream, 0, 4000, "signs")
        assert np.abs((signs * features[:, :5]).sum(1) - targets[:, 0]).max() < 1e-5
        return
    weights = hidden(stream, 0, 4000)
    if name == "scale-drift":
        features = features / np.exp(hidden(stream, 0, 4000, "log_scales").astype(np.float64))
    if name == "dynamic-scale-shift":
        features = features / hidden(stream, 0, 4000, "current_scales")
    noise = targets[:, 0] - (weights * features).sum(1)
    assert abs(noise.std() - 0.1) < 0.005
    assert abs(noise.mean()) < 0.01


@pytest.mark.parametrize(("interval", "expected"), [(3, {0, 3, 6, 9}), (1, set(range(10))), (50, {0})])
def test_abrupt_weights_change_at_multiples_of_the_interval_and_nowhere_else(interval, expected):
    stream = AbruptChangeStream(feature_dim=4, change_interval=interval, noise_std=0)
    first = np.asarray(generation.initial_state(stream, 0).true_weights)
    weights = hidden(stream, 0, 10)
    before = np.concatenate([first[None], weights[:-1]])
    assert {int(t) for t in np.flatnonzero((weights != before).any(axis=1))} == expected
    assert set(stream.change_points(10)) == expected


def test_cyclic_weights_come_back_in_turn():
    stream = CyclicStream(feature_dim=3, cycle_length=4, num_configurations=3)
    weights = hidden(stream, 7, 30)
    configurations = np.asarray(generation.initial_state(stream, 7).configurations)
    assert np.array_equal(weights, configurations[(np.arange(30) // 4) % 3])


@pytest.mark.parametrize("period", [37, 1000, 999_983])
def test_periodic_weights_hold_to_the_formula_after_a_thousand_million_steps(period):
    stream = PeriodicChangeStream(feature_dim=20, period=period, amplitude=2.5, noise_std=0)
    state = generation.initial_state(stream, 8)
    late = state._replace(step_count=np.int32(10**9))
    block, _ = next(generation.blocks(stream, 8, 10**9 + 500, start=10**9, state=late, hidden=True))
    t = np.arange(10**9, 10**9 + 500, dtype=np.float64)[:, None]
    phases, base = np.asarray(state.phases, np.float64), np.asarray(state.base_weights, np.float64)
    exact = base + 2.5 * np.sin(2 * np.pi * t / period + phases)
    bound = 2e-6 * 2.5 + np.spacing(np.abs(exact).astype(np.float32))
    assert (np.abs(block.arrays["true_weights"] - exact) <= bound).all()


def test_scale_drift_stops_at_its_walls():
    stream = ScaleDriftStream(feature_dim=4, scale_drift_rate=0.5, min_log_scale=-1, max_log_scale=0.5)
    logs = hidden(stream, 3, 2000, "log_scales")
    assert logs.min() == -1
    assert logs.max() == 0.5


def test_dynamic_scales_lie_between_their_bounds_evenly_on_a_log_scale():
    stream = DynamicScaleShiftStream(feature_dim=20, scale_change_interval=10, min_scale=0.5, max_scale=3)
    scales = np.unique(hidden(stream, 3, 20_000, "current_scales"))
    assert scales.min() >= 0.5 * (1 - 1e-6)
    assert scales.max() <= 3 * (1 + 1e-6)
    share = np.log(scales / 0.5) / np.log(6)
    assert abs(share.mean() - 0.5) < 0.01


def test_sutton_flips_one_relevant_sign_at_each_multiple_but_the_first():
    stream = SuttonExperiment1Stream(change_interval=4)
    signs = hidden(stream, 9, 200, "signs")
    flips = (signs[1:] != signs[:-1]).sum(axis=1)
    assert (signs[0] == 1).all()
    assert set(np.flatnonzero(flips) + 1) == set(range(4, 200, 4)) == set(stream.change_points(200))
    assert flips.max() == 1


def test_intervals_beyond_the_counter_come_round_at_step_0_alone():
    stream = AbruptChangeStream(feature_dim=2, change_interval=2**40)
    assert len(np.unique(hidden(stream, 0, 50)[:, 0])) == 1
    assert len(rows(CyclicStream(2, cycle_length=2**40), 0, 50)[0]) == 50
    assert len(rows(PeriodicChangeStream(2, period=2**40), 0, 50)[0]) == 50


def test_a_state_without_its_step_count_begins_at_0():
    stream = RandomWalkStream(feature_dim=2)
    state = generation.initial_state(stream, 0)
    step, _ = stream.step(RandomWalkState(state.key, state.true_weights))
    assert np.array_equal(step.target, rows(stream, 0, 1)[1][0])
    assert PeriodicChangeState._fields == ("key", "base_weights", "phases", "step_count")


@pytest.mark.parametrize("raw", [True, False])
def test_a_scan_may_begin_with_a_state_made_by_hand_from_a_key_of_jax(raw):
    stream = RandomWalkStream(feature_dim=2)
    state = generation.initial_state(stream, 0)
    words = jax.random.key_data(state.key)
    key = words if raw else jax.random.wrap_key_data(words, impl="threefry2x32")
    last, seen = jax.lax.scan(
        lambda state, idx: stream.step(state, idx)[::-1], RandomWalkState(key, state.true_weights), np.arange(5)
    )
    observations, targets, _ = rows(stream, 0, 5)
    assert np.array_equal(seen.observation, observations)
    assert np.array_equal(seen.target, targets)
    assert last.key.dtype == key.dtype


def test_a_state_made_by_hand_with_a_key_of_another_implementation_is_refused():
    stream = RandomWalkStream(feature_dim=2)
    with pytest.raises(ArgumentError, match="threefry2x32"):
        stream.step(RandomWalkState(jax.random.key(0, impl="rbg"), np.zeros(2, np.float32)))


def test_no_noise_and_no_features_are_zeros_not_nan():
    observations, targets, _ = rows(AbruptChangeStream(3, noise_std=0, feature_std=0), 0, 100)
    assert not observations.any()
    assert not targets.any()


@pytest.mark.parametrize("values", [
    {"feature_dim": 0}, {"feature_dim": 2.5}, {"feature_dim": True}, {"feature_dim": "20"}, {"feature_dim": 2**60},
    {"noise_std": -1}, {"noise_std": float("nan")}, {"noise_std": float("inf")}, {"noise_std": 1e39},
    {"change_interval": 0}, {"change_interval": -3}, {"feature_std": None},
])  # fmt: skip
def test_a_parameter_out_of_its_range_is_named_with_its_value(values):
    with pytest.raises(ArgumentError, match=rf"{next(iter(values))} must be .*got"):
        AbruptChangeStream(**{"feature_dim": 3, **values})


def test_bounds_that_contradict_each_other_are_refused():
    with pytest.raises(ArgumentError, match=r"min_log_scale must be at most max_log_scale, got 2\.0 and 1\.0"):
        ScaleDriftStream(3, min_log_scale=2, max_log_scale=1)
    with pytest.raises(ArgumentError, match="min_scale must be at most max_scale"):
        DynamicScaleShiftStream(3, min_scale=2, max_scale=1)


def test_minus_zero_and_zero_are_one_parameter():
    assert str(AbruptChangeStream(3, noise_std=-0.0).noise_std) == "0.0"


def test_a_key_of_another_implementation_is_refused_by_init():
    with pytest.raises(ValueError, match="threefry2x32"):
        RandomWalkStream(2).init(jax.random.key(0, impl="rbg"))


def test_scales_of_another_length_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"must match .*\(3,\) scales for 5 features"):
        ScaledStreamWrapper(AbruptChangeStream(5), [1, 2, 3])
    with pytest.raises(ValueError, match="must be finite"):
        ScaledStreamWrapper(AbruptChangeStream(2), [1, float("nan")])


def test_scales_are_rounded_to_float32_before_they_are_stored_and_equal_wrappers_compare_equal():
    one, other = (ScaledStreamWrapper(AbruptChangeStream(2), scales) for scales in ([0.1, 3], np.float32([0.1, 3])))
    assert one == other
    assert hash(one) == hash(other)
    assert one.to_json()["feature_scales"] == [float(np.float32(0.1)), 3.0]
    assert registry.from_spec(one.spec(0, 10)) == one


@pytest.mark.parametrize("make", [even_scales, lambda *a: np.asarray(make_scale_range(*a))])
def test_a_range_of_scales_goes_from_the_first_to_the_last(make):
    logs = make(7, 0.001, 1000.0, True)
    np.testing.assert_allclose(logs, 10.0 ** np.arange(-3, 4), rtol=2e-6)
    np.testing.assert_allclose(make(5, 1.0, 3.0, False), [1, 1.5, 2, 2.5, 3])
    assert make(1, 2.0, 3.0, False).tolist() == [2.0]
    with pytest.raises(ArgumentError, match="greater than 0"):
        make(3, 0.0, 1.0, True)


def test_a_stream_longer_than_its_counter_is_refused():
    with pytest.raises(ArgumentError, match=f"at most {MAX_STEPS} .*got 9007199254740993"):
        AbruptChangeStream(3).spec(0, 9007199254740993)


def test_definitions_that_are_not_known_here_are_refused_without_importing_anything():
    spec = AbruptChangeStream(3).spec(0, 10)
    with pytest.raises(UnavailableError, match="not known here"):
        registry.from_spec({**spec, "stream": "os:system"})
    with pytest.raises(UnavailableError, match="version 2"):
        registry.from_spec({**spec, "version": 2})
    with pytest.raises(UnavailableError, match="cannot be made here"):
        registry.from_spec({**spec, "prng": "rbg"})
    with pytest.raises(RefusedError, match="the parameters of 'abrupt'"):
        registry.from_spec({**spec, "parameters": {"feature_dim": 3}})
    with pytest.raises(RefusedError, match="not usable"):
        registry.from_spec({**spec, "parameters": {**spec["parameters"], "noise_std": -1}})


class Counter:
    """A stream of the user's own."""

    feature_dim = 2

    def init(self, key):
        return {"count": jax.numpy.zeros((), "int32"), "key": key}

    def step(self, state, idx):
        from alberta_data.blocks import TimeStep

        x = jax.numpy.stack([state["count"], idx]).astype("float32")
        return TimeStep(x, x[:1] * 2), {**state, "count": state["count"] + 1}


def test_a_stream_of_ones_own_gives_the_same_blocks_whatever_their_length_and_gets_its_index():
    expected = np.stack([np.arange(100), np.arange(100)], axis=1).astype(np.float32)
    for length in (1, 7, 64):
        observations, targets, state = rows(Counter(), 0, 100, block_steps=length)
        assert np.array_equal(observations, expected)
        assert np.array_equal(targets, 2 * expected[:, :1])
        assert state["count"] == 100
    assert np.array_equal(state["key"], jax.random.key_data(keys.key(0)))
