"""Layouts of spaces, and which are refused."""

import numpy as np
import pytest
from gymnasium import spaces

from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.spaces import layout_of
from alberta_data.errors import ArgumentError

FLATTENABLE = [
    spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    spaces.Box(-1.0, 1.0, (2,), np.float64),
    spaces.Box(0, 255, (4, 4, 3), np.uint8),
    spaces.Discrete(5),
    spaces.Discrete(4, start=-2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 2]]),
    spaces.MultiDiscrete([2, 3], start=[1, -1]),
    spaces.MultiBinary(4),
    spaces.MultiBinary((2, 2)),
    spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))),
    spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "where": spaces.Discrete(3, start=1)}),
    spaces.Dict({"in ner": spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.MultiBinary(2)})}),
    spaces.OneOf((spaces.Discrete(2), spaces.Box(-1, 1, (3,)))),
]


@pytest.mark.parametrize("space", FLATTENABLE, ids=str)
def test_one_hot_holds_the_numbers_of_gymnasiums_flatten(space):
    space.seed(0)
    layout = layout_of(space, "one-hot")
    assert layout.width == spaces.flatdim(space) == len(set(layout.columns))
    for _ in range(20):
        value = space.sample()
        row = np.empty(layout.shape, layout.dtype)
        row[...] = layout.convert(value)
        assert np.array_equal(row.reshape(-1), spaces.flatten(space, value))
        assert layout.vector(value).dtype == np.float32


@pytest.mark.parametrize(
    ("space", "value", "row", "columns"),
    [
        (
            spaces.Box(-1, 1, (2, 2)),
            np.array([[0.1, 0.2], [0.3, 0.4]], np.float32),
            [0.1, 0.2, 0.3, 0.4],
            "0.0 0.1 1.0 1.1",
        ),
        (spaces.Discrete(5), 3, [3], None),
        (spaces.Discrete(5, start=10), np.int64(12), [12], None),
        (spaces.MultiDiscrete([2, 2]), np.array([1, 0]), [1, 0], "0 1"),
    ],
    ids=str,
)
def test_the_published_layout(space, value, row, columns):
    layout = layout_of(space)
    assert np.array_equal(layout.vector(value), np.array(row, np.float32))
    names = [f"observation.{c}" for c in columns.split()] if columns else ["observation"]
    assert list(layout.columns) == names
    assert layout.dtype == space.dtype


def test_multi_discrete_lies_as_numbers_or_as_digits():
    space, value = spaces.MultiDiscrete([2, 2]), np.array([1, 0])
    assert layout_of(space).vector(value).tolist() == [1, 0]
    assert layout_of(space, "one-hot").vector(value).tolist() == [0, 1, 1, 0]


def test_columns_name_the_place_of_each_number():
    space = spaces.Dict({"at": spaces.Discrete(2, start=5), "v x": spaces.Box(-1, 1, (2,))})
    columns = ["observation.at.is5", "observation.at.is6", "observation.v_x.0", "observation.v_x.1"]
    assert list(layout_of(space, "one-hot").columns) == columns
    clash = spaces.Dict({"a b": spaces.Box(-1, 1, ()), "a_b": spaces.Box(-1, 1, ())})
    assert list(layout_of(clash, "one-hot").columns) == ["observation.0", "observation.1"]


VARIABLE = [spaces.Sequence(spaces.Discrete(2)), spaces.Text(5), spaces.Graph(spaces.Discrete(2), None)]


@pytest.mark.parametrize("flatten", ["published", "one-hot"])
@pytest.mark.parametrize("inner", VARIABLE, ids=lambda s: type(s).__name__)
def test_what_has_no_fixed_width_is_refused_with_its_place(inner, flatten):
    space = spaces.Dict({"ok": spaces.Discrete(2), "deep": spaces.Tuple((spaces.Discrete(2), inner))})
    kind = type(inner).__name__
    with pytest.raises(ArgumentError, match=rf"^Unsupported space type: {kind} at observation\['deep'\]\[1\]"):
        layout_of(space, flatten)
    with pytest.raises(ArgumentError, match=rf"^Unsupported space type: {kind} at observation "):
        layout_of(inner, flatten)


@pytest.mark.parametrize("space", [spaces.MultiBinary(2), spaces.Tuple((spaces.Discrete(2),)), spaces.Dict()], ids=str)
def test_what_the_published_layout_does_not_know_is_refused(space):
    with pytest.raises(ValueError, match=r"^Unsupported space type: .*one-hot"):
        layout_of(space)


@pytest.mark.parametrize("space", [spaces.Box(0, 1, (0,)), spaces.Box(0, 1, (2,), np.longdouble)], ids=str)
def test_what_cannot_be_stored_is_refused(space):
    with pytest.raises(ValueError, match=r"^Unsupported space type: "):
        layout_of(space)


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (spaces.Box(-1, 1, (4,)), np.zeros(3, np.float32)),
        (spaces.Box(-1, 1, (4,)), np.float32(1)),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0.5, 0.25])),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([1, 256])),
        (spaces.Box(0, 1, (2,)), ["a", "b"]),
        (spaces.Discrete(3), 1.5),
        (spaces.Discrete(3), np.array([1, 2])),
        (spaces.Discrete(3), "1"),
    ],
    ids=str,
)
def test_an_observation_that_is_not_what_its_space_says_is_refused_not_bent(space, value):
    with pytest.raises(ArgumentError, match=r"^observation must"):
        layout_of(space).convert(value)


def test_a_vector_never_shares_memory_with_the_environment():
    value = np.zeros(3, np.float32)
    assert not np.shares_memory(layout_of(spaces.Box(-1, 1, (3,))).vector(value), value)


@pytest.mark.parametrize("flatten", ["published", "one-hot"])
@pytest.mark.parametrize("space", FLATTENABLE, ids=str)
def test_an_action_comes_back_from_its_row(space, flatten):
    codec = ActionCodec(space)
    try:
        layout = codec.layout(flatten)
    except ArgumentError:
        assert flatten == "published"
        return
    space.seed(1)
    for _ in range(5):
        action = codec.coerce(space.sample())
        row = np.empty(layout.shape, layout.dtype)
        row[...] = layout.convert(action)
        again = codec.from_row(row.reshape(-1), flatten)
        assert np.array_equal(layout.convert(again), row)
        assert isinstance(space, spaces.OneOf) or space.contains(again)


def test_what_a_policy_may_return():
    pendulum = ActionCodec(spaces.Box(-2.0, 2.0, (1,), np.float32))
    for action in (0.5, [0.5], np.float64(0.5), np.array([0.5])):
        assert pendulum.coerce(action).tolist() == [0.5]
        assert pendulum.coerce(action).dtype == np.float32
    cart = ActionCodec(spaces.Discrete(2))
    for action in (1, 1.0, [1], np.array(1), np.array([1.0], np.float32), np.int32(1), True):
        assert cart.coerce(action) == 1
        assert type(cart.coerce(action)) is int
    for action in (2, -1, 0.5, [0, 1], "left", None, float("nan")):
        with pytest.raises(ArgumentError, match=r"^action must"):
            cart.coerce(action)
    with pytest.raises(ArgumentError, match=r"^action must"):
        pendulum.coerce([0.1, 0.2])
    assert ActionCodec(spaces.Box(-1.0, 1.0, (2,), np.float64)).coerce([0.1, 0.2]).dtype == np.float32
