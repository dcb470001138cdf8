import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alberta_data.learners import OnlineNormalizer, WelfordNormalizer


@pytest.mark.parametrize("rule", [OnlineNormalizer(), WelfordNormalizer()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_a_count_goes_on_past_2_to_the_24(rule, dtype):
    state = rule.init(2)._replace(sample_count=dtype(16777215))
    for _ in range(4):
        state = rule.update_only(state, np.ones(2, np.float32))
    assert int(state.sample_count) == 16777219


@pytest.mark.parametrize("rule", [OnlineNormalizer(decay=1.0), WelfordNormalizer()], ids=lambda rule: rule.name)
def test_a_count_never_wraps(rule):
    state = rule.init(1)._replace(sample_count=jnp.int32(2**31 - 4))
    counts = []
    for _ in range(4):
        state = rule.update_only(state, np.ones(1, np.float32))
        counts.append(int(state.sample_count))
    assert counts == [2**31 - 3, *[2**31 - 2] * 3]
    assert np.isfinite(state.var).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -3.3, 1e6, 1e15, 1e-20])
@pytest.mark.parametrize("rule", [OnlineNormalizer(), WelfordNormalizer()], ids=lambda rule: rule.name)
def test_a_constant_observation_stays_finite(rule, value):
    state = rule.init(1)
    for _ in range(200):
        scaled, state = rule.normalize(state, np.float32([value]))
        assert np.isfinite(scaled).all()
    assert np.isfinite(state.var).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=30))
def test_welford_is_the_mean_and_the_corrected_variance_of_all_it_saw(values):
    rule = WelfordNormalizer()
    state = rule.init(1)
    for value in values:
        state = rule.update_only(state, np.float32([value]))
    spread = max(map(abs, values))
    assert float(state.mean[0]) == pytest.approx(np.mean(values), rel=1e-5, abs=1e-5 * spread + 1e-30)
    expected = 1.0 if len(values) < 2 else np.var(values, ddof=1)
    assert float(state.var[0]) == pytest.approx(expected, rel=1e-4, abs=1e-5 * spread**2 + 1e-30)


def test_the_variance_of_welford_does_not_drift_at_large_counts():
    rule = WelfordNormalizer()
    state = rule.init(1)._replace(mean=jnp.float32([0.0]), var=jnp.float32([1.0]), sample_count=jnp.int32(50_000_000))
    for value in (1.0, -1.0) * 100:
        state = rule.update_only(state, np.float32([value]))
    assert float(state.var[0]) == pytest.approx(1.0, abs=1e-5)
