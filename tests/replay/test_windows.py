import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alberta_data.replay import WindowFold, edges_every, even_edges
from alberta_data.replay.windows import PIECE


def folded(metrics, edges, cuts):
    fold = WindowFold(edges)
    for part in np.split(metrics, cuts):
        fold.add(part)
    return fold.curves()


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 3 * PIECE), st.integers(1, 40))
def test_windows_do_not_depend_on_how_the_steps_arrive(data, steps, windows):
    metrics = np.random.default_rng(steps).standard_normal((steps, 3)).astype(np.float32)
    edges = even_edges(steps, windows)
    cuts = sorted(data.draw(st.lists(st.integers(0, steps), max_size=12)))
    whole, parts = folded(metrics, edges, []), folded(metrics, edges, cuts)
    assert all(map(np.array_equal, whole, parts))
    assert len(whole.mean) == min(steps, windows)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 2000), st.integers(1, 2500))
def test_windows_hold_mean_smallest_and_largest(steps, every):
    metrics = np.random.default_rng(every).standard_normal((steps, 2)).astype(np.float32)
    edges = edges_every(steps, every)
    curves = folded(metrics, edges, [steps // 3])
    for place, (first, last) in enumerate(itertools.pairwise(edges)):
        part = metrics[first:last]
        np.testing.assert_allclose(curves.mean[place], part.astype(np.float64).mean(axis=0), rtol=1e-12)
        assert np.array_equal(curves.min[place], part.min(axis=0))
        assert np.array_equal(curves.max[place], part.max(axis=0))


def test_edges_cover_every_step_once():
    assert even_edges(10, 3).tolist() == [0, 3, 6, 10]
    assert even_edges(2, 1000).tolist() == [0, 1, 2]
    assert edges_every(10, 4).tolist() == [0, 4, 8, 10]
    assert edges_every(8, 4).tolist() == [0, 4, 8]
    assert even_edges(2**53 - 1, 1000)[-1] == 2**53 - 1


@pytest.mark.parametrize("lanes", [(), (3, 8)])
def test_windows_keep_the_trailing_axes(lanes):
    metrics = np.random.default_rng(0).standard_normal((100, *lanes)).astype(np.float32)
    curves = folded(metrics, even_edges(100, 7), [13, 50])
    assert curves.mean.shape == curves.min.shape == curves.max.shape == (7, *lanes)
    assert np.array_equal(curves.max[6], metrics[85:].max(axis=0))


def test_an_infinite_metric_shows_in_its_window_alone():
    metrics = np.ones((30, 1), np.float32)
    metrics[15] = np.inf
    curves = folded(metrics, even_edges(30, 3), [])
    assert curves.mean[:, 0].tolist() == [1.0, np.inf, 1.0]
