"""The streams against rows that the published definitions produced."""

import json
from pathlib import Path

import numpy as np
import pytest

from alberta_data.streams.registry import STREAMS
from alberta_data.streams.scaled import ScaledStreamWrapper, make_scale_range
from tests.streams.making import rows

DATA = Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "streams.json").read_text())
KEPT = np.r_[0:64, 2500:2516, 4984:5000]
CLASSES = {stream.__name__: stream for stream in STREAMS.values()}


def stream_of(case):
    given = case["params"]
    if case["stream"] != "Scaled":
        return CLASSES[case["stream"]](**given)
    inner = CLASSES[given["inner"]](**given["inner_kwargs"])
    return ScaledStreamWrapper(inner, make_scale_range(inner.feature_dim, given["min_scale"], given["max_scale"]))


@pytest.fixture(scope="module")
def reference():
    return np.load(DATA / "streams.npz")


@pytest.mark.parametrize("name", CASES)
def test_a_stream_draws_what_the_published_definition_draws(name, reference):
    observations, targets, _ = rows(stream_of(CASES[name]), CASES[name]["seed"], CASES[name]["num_steps"])
    expected = reference[f"{name}/observations"]
    if name.startswith("scale-drift"):
        np.testing.assert_allclose(observations[KEPT], expected, rtol=5e-6)
    else:
        assert np.array_equal(observations[KEPT], expected)
    tolerance = 1e-3 if name.startswith("periodic") else 2e-5
    np.testing.assert_allclose(targets[KEPT], reference[f"{name}/targets"], rtol=1e-4, atol=tolerance)
