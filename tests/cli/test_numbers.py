from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alberta_data.cli.numbers import (
    bytes_text,
    duration,
    read_count,
    read_pair,
    read_real,
    read_reals,
    read_whole,
    short,
)
from alberta_data.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e7", 10**7), ("1E7", 10**7), ("10M", 10**7), ("10_000_000", 10**7), ("1.5e3", 1500), ("2.5k", 2500),
        ("1.0", 1), ("+3", 3), (".5k", 500), ("1e3k", 10**6), ("100e-2", 1), ("1G", 10**9),
        ("9007199254740993", 9007199254740993), ("0", 0), ("-5", -5), ("4294967295", 2**32 - 1),
    ],
)  # fmt: skip
def test_a_whole_number_is_read_exactly(text: str, number: int) -> None:
    assert read_whole("--steps", text) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "1.5", "1e-3", "1e400", "1e999999999", "1e-999999999", "1e9999999999", "inf", "nan", "-inf", "ten",
     "1,000", "0x10", "1__0", "_1", "1_", "1e", "e5", "1 000", "１０", "1e5\n",
     "10m", "M", "--5", "1/2", "1" * 100, "1.1k1"],
)  # fmt: skip
def test_anything_else_is_refused_with_the_option_and_the_text(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^--steps must be a whole number") as caught:
        read_whole("--steps", text)
    assert repr(text)[1:20] in str(caught.value)


@pytest.mark.parametrize("text", ["0", "-5", "-1e3"])
def test_a_count_is_at_least_one(text: str) -> None:
    with pytest.raises(ArgumentError, match=f"--steps must be at least 1, got {text}"):
        read_count("--steps", text)


@given(st.integers(-(10**30), 10**30))
def test_every_integer_is_read_back(number: int) -> None:
    assert read_whole("--n", str(number)) == read_whole("--n", f"{number:_}") == number


@given(st.integers(0, 10**12), st.integers(0, 12))
def test_a_decimal_with_an_exponent_is_a_whole_number_exactly_where_it_is_one(digits: int, places: int) -> None:
    text = f"{digits}e-{places}"
    exact = Fraction(digits, 10**places)
    if exact.denominator == 1:
        assert read_whole("--n", text) == exact
    else:
        with pytest.raises(ArgumentError):
            read_whole("--n", text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_read_back(number: float) -> None:
    assert read_real("--x", repr(number)) == number


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e400", "-1e999", "a", "1,5", "0x1p3", "1k"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^--gamma must be a finite number"):
        read_real("--gamma", text)


def test_lists_and_ranges_give_their_numbers_in_order() -> None:
    assert read_reals("--s", "0.01,0.03") == (0.01, 0.03)
    assert read_reals("--s", "0.001:0.1:log3") == (0.001, 0.01, 0.1)
    assert read_reals("--s", "0:1:lin5,7") == (0.0, 0.25, 0.5, 0.75, 1.0, 7.0)
    assert len(read_reals("--s", "0.001:0.1:log9")) == 9
    assert read_reals("--s", "0.1:0.001:log3") == (0.1, 0.01, 0.001)


@pytest.mark.parametrize(
    "text", ["", ",", "0.1,", "1:2", "1:2:9", "1:2:log1", "0:1:log3", "a:b:lin2", "1:2:log9999999"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^--s\b"):
        read_reals("--s", text)


def test_a_pair_has_two_numbers() -> None:
    assert read_pair("--scale-range", "0.001:1000") == (0.001, 1000.0)
    with pytest.raises(ArgumentError, match=r"^--scale-range must be two numbers"):
        read_pair("--scale-range", "0.001")


def test_numbers_are_shown_as_people_read_them() -> None:
    assert [short(n) for n in (7, 1234, 999_400, 999_700, 1.2e6, 3e9)] == ["7", "1.23k", "999k", "1M", "1.2M", "3G"]
    assert [bytes_text(n) for n in (12, 8_400_000)] == ["12 bytes", "8.4 MB"]
    assert [duration(s) for s in (6.6, 125, 3720)] == ["7 s", "2 min 05 s", "1 h 02 min"]
