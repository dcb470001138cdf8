"""Policies a spec can name: `random`, `constant:A`, `epsilon:E:A`.

`A` is an action: an integer, or numbers with commas between (`0.5,-1`). This module reads and checks the text; whether
the action lies in the environment's action space is found when the environment is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from alberta_data.errors import ArgumentError

_FORMS = "random, constant:A or epsilon:E:A"


@dataclass(frozen=True)
class PolicyText:
    """A policy as a spec names it.

    Attributes:
        action: the numbers of the constant action; None for `random`.
        epsilon: share of random actions; None without.
    """

    action: tuple[int | float, ...] | None = None
    epsilon: float | None = None

    def __str__(self) -> str:
        """The one text of this policy: `constant:01` and `constant:1` are the same, and written the same."""
        if self.action is None:
            return "random"
        numbers = ",".join(map(repr, self.action))
        return f"constant:{numbers}" if self.epsilon is None else f"epsilon:{self.epsilon!r}:{numbers}"


def parse_policy(text: str) -> PolicyText:
    """Read `random`, `constant:A` or `epsilon:E:A`.

    Raises:
        ArgumentError: the text is none of these, or a number in it is out of range; the message names the option.
    """
    kind, *rest = text.split(":")
    if kind == "random" and not rest:
        return PolicyText()
    if kind == "constant" and len(rest) == 1:
        return PolicyText(_action(rest[0], text))
    if kind == "epsilon" and len(rest) == 2:
        return PolicyText(_action(rest[1], text), _epsilon(rest[0], text))
    raise ArgumentError(f"policy must be {_FORMS}, got {text!r}")


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float; refuse what is no share.

    Raises:
        ArgumentError: it is not from 0 to 1.
    """
    if not 0.0 <= epsilon <= 1.0:
        raise ArgumentError(f"epsilon must be from 0 to 1, got {epsilon!r}")
    return float(epsilon) + 0.0  # −0.0 becomes 0.0


def _epsilon(text: str, whole: str) -> float:
    try:
        return check_epsilon(float(text))
    except ValueError:
        raise ArgumentError(f"policy's epsilon must be a number from 0 to 1, got {text!r} in {whole!r}") from None


def _action(text: str, whole: str) -> tuple[int | float, ...]:
    try:
        numbers = tuple(_number(word) for word in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise ArgumentError(f"policy's action must be finite numbers with commas between, got {text!r} in {whole!r}")
    return numbers


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text) + 0.0
