"""Canonical JSON: one text for one value, read back as that value."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alberta_data.errors import ArgumentError, RefusedError
from alberta_data.store.canonical import MAX_INTEGER, digest, dumps, loads

doubles = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | doubles | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=2000, deadline=None)
@given(doubles)
def test_every_finite_double_is_read_back(number):
    text = dumps(number)
    again = loads(text)
    assert again == number
    assert dumps(again) == text


@settings(deadline=None)
@given(values)
def test_every_value_is_read_back_and_written_alike(value):
    try:
        text = dumps(value)
    except ArgumentError:
        # Text with half a surrogate pair has no UTF-8.
        assert "\\ud" in json.dumps(value)
        return
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    "number", [1e20, 1e21, 2.0**53, 2.0**63, 5e-324, 1.7976931348623157e308, 123456789012345680000.0]
)
def test_doubles_that_are_written_as_integers_stay_doubles(number):
    assert loads(dumps(number)) == number
    assert dumps(loads(dumps(number))) == dumps(number)


def test_minus_zero_is_zero():
    assert dumps(-0.0) == dumps(0.0) == b"0"


def test_the_form_is_that_of_rfc_8785():
    value = {"\u20ac": "Euro", "\r": "CR", "1": 4.5, "\U0001f600": 1e30, "\ufb33": [56, {"d": True, "10": None}]}
    text = '{"\\r":"CR","1":4.5,"€":"Euro","😀":1e+30,"\ufb33":[56,{"10":null,"d":true}]}'
    assert dumps(value) == text.encode()
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -(2**53), {1: 2}, {"a": object()}, "\ud800", {2.5}])
def test_a_value_without_a_canonical_form_is_refused(value):
    with pytest.raises(ArgumentError, match="canonical"):
        dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b"NaN",
        b"[Infinity]",
        b"01",
        b"\xff",
        b"[" * 100_000,
        b"1 2",
    ],
)
def test_text_that_is_no_plain_json_is_refused(text):
    with pytest.raises(RefusedError):
        loads(text)


def test_depth_is_bounded_both_ways():
    deep = json.loads("[" * 32 + "]" * 32)
    assert loads(dumps(deep)) == deep
    with pytest.raises(ArgumentError, match="32 deep"):
        dumps([deep])
    with pytest.raises(RefusedError, match="32 deep"):
        loads(json.dumps([deep]).encode())
