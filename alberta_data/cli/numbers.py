"""Numbers from what a person typed, read exactly: `1e7`, `10M`, `10_000_000`, `1.5e3`; lists and ranges of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from alberta_data.errors import ArgumentError

_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_MULTIPLES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_RANGE = re.compile(r"([^:]*):([^:]*):(log|lin)([0-9]{1,6})", re.ASCII)
_MOST_DIGITS = 40
_MOST_POINTS = 100_000
_FORMS = "such as 1000, 1e7, 10M, 10_000_000"


def read_whole(option: str, text: str) -> int:
    """Return the whole number that `text` says, never through a float.

    Args:
        option: the option's name, for the message.
        text: digits with `_` between, a decimal point, an exponent, k, M or G behind.

    Raises:
        ArgumentError: not a number, not a whole one, or one of more than 40 digits.
    """
    number, multiple = text, 1
    if text[-1:] in _MULTIPLES:
        number, multiple = text[:-1], _MULTIPLES[text[-1]]
    if not _NUMBER.fullmatch(number):
        raise ArgumentError(f"{option} must be a whole number {_FORMS}, got {text!r:.80}")
    exact = Decimal(number)
    # 1e400 is a whole number, and 1e999999999 one that would fill the memory: neither is anything a person wants.
    if len(number) > 2 * _MOST_DIGITS or exact.adjusted() > _MOST_DIGITS:
        raise ArgumentError(f"{option} must be a whole number of at most {_MOST_DIGITS} digits, got {text!r:.80}")
    numerator, denominator = exact.as_integer_ratio() if exact.adjusted() > -_MOST_DIGITS else (1, 0)
    if denominator == 0 or numerator * multiple % denominator:
        raise ArgumentError(f"{option} must be a whole number {_FORMS}, got {text!r}")
    return numerator * multiple // denominator


def read_count(option: str, text: str) -> int:
    """Return a whole number of at least 1; see `read_whole`.

    Raises:
        ArgumentError: another one.
    """
    number = read_whole(option, text)
    if number < 1:
        raise ArgumentError(f"{option} must be at least 1, got {text}")
    return number


def read_real(option: str, text: str) -> float:
    """Return the double that `text` says.

    Raises:
        ArgumentError: not a number, or not a finite one.
    """
    number = float(text.replace("_", "")) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"{option} must be a finite number such as 0.1 or 1e-3, got {text!r:.80}")
    return number


def read_reals(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a list (`0.01,0.03`), of ranges (`0.001:0.1:log9`, `0:1:lin5`), or of both.

    A range has its two ends, and the points between rounded to 12 digits: what a receipt keeps is what a person reads.

    Raises:
        ArgumentError: an empty list, a part that is neither a number nor a range.
    """
    return tuple(number for part in text.split(",") for number in _points(option, part))


def _points(option: str, part: str) -> Sequence[float]:
    match = _RANGE.fullmatch(part)
    if match is None and ":" not in part:
        return (read_real(option, part),)
    if match is None:
        raise ArgumentError(
            f"{option} must be numbers and ranges such as 0.01,0.03 or 0.001:0.1:log9, got {part!r:.80}"
        )
    first, last, count = read_real(option, match[1]), read_real(option, match[2]), int(match[4])
    if not 2 <= count <= _MOST_POINTS:
        raise ArgumentError(f"{option}: a range must have 2 to {_MOST_POINTS} points, got {count} in {part!r}")
    if match[3] == "log" and not (first > 0 and last > 0):
        raise ArgumentError(f"{option}: the ends of a log range must be greater than 0, got {part!r}")
    between = [_between(first, last, n / (count - 1), match[3]) for n in range(1, count - 1)]
    return (first, *(float(f"{number:.12g}") for number in between), last)


def _between(first: float, last: float, share: float, spacing: str) -> float:
    if spacing == "lin":
        return first * (1 - share) + last * share
    return math.exp(math.log(first) * (1 - share) + math.log(last) * share)


def read_pair(option: str, text: str) -> tuple[float, float]:
    """Return the two numbers of `0.001:1000`.

    Raises:
        ArgumentError: anything else.
    """
    first, separator, last = text.partition(":")
    if not separator:
        raise ArgumentError(f"{option} must be two numbers such as 0.001:1000, got {text!r:.80}")
    return read_real(option, first), read_real(option, last)


def with_commas(number: int) -> str:
    """Return `10,000,000` for 10000000."""
    return f"{number:,}"


def short(number: float) -> str:
    """Return a count in at most four characters and a letter: `1.2M`."""
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{letter}" if number < 999.5e9 else f"{number / size:.0f}{letter}"
    return f"{number:.3g}"


def bytes_text(size: int) -> str:
    """Return a size as a person reads it: `840.2 MB`."""
    for unit, one in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} bytes"


def duration(seconds: float) -> str:
    """Return `1 h 02 min`, `2 min 05 s`, `7 s`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
