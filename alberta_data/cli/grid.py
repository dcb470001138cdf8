"""Optimizers, normalisers and lists of their parameters → the learners of a grid."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alberta_data.errors import ArgumentError

MOST = 100_000

Values = Mapping[str, Sequence[float] | None]


def grid(optimizers: Sequence[str], normalizers: Sequence[str], values: Values) -> list[Any]:
    """Return a learner for every combination, in the order in which it was typed, each once.

    Args:
        optimizers: their names.
        normalizers: their names; `none` for none.
        values: parameter → numbers, or None where it was not given and has its default.

    Raises:
        ArgumentError: an unknown name, a parameter that nothing chosen has, a number out of its range.
    """
    from alberta_data.learners import NORMALIZERS, OPTIMIZERS, LinearLearner, find_normalizer, find_optimizer

    rules = [find_optimizer(name) for name in optimizers]
    scalers = [find_normalizer(name) for name in normalizers]
    chosen = [rule for rule in (*rules, *scalers) if rule is not None]
    for name, numbers in values.items():
        if numbers is not None and not any(name in _parameters(rule) for rule in chosen):
            owners = [n for n, rule in {**OPTIMIZERS, **NORMALIZERS}.items() if rule and name in _parameters(rule)]
            there = ", ".join([*optimizers, *(n for n in normalizers if n != "none")])
            raise ArgumentError(f"{name} must go with {' or '.join(owners)}, got {there} alone")
    size = sum(_size(rule, values) for rule in rules) * sum(_size(scaler, values) for scaler in scalers)
    if size > MOST:
        raise ArgumentError(f"a grid must have at most {MOST} learners, got {size}: take fewer points")
    made = [
        LinearLearner(optimizer, normalizer)
        for rule in rules
        for optimizer in _made(rule, values)
        for scaler in scalers
        for normalizer in _made(scaler, values)
    ]
    return list(dict.fromkeys(made))


def _parameters(rule: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(rule)]


def _given(rule: Any, values: Values) -> dict[str, Sequence[float]]:
    """Return the lists that a rule takes, parameter → numbers, in the order of its parameters."""
    found = {name: values.get(name) for name in _parameters(rule)} if rule is not None else {}
    return {name: numbers for name, numbers in found.items() if numbers is not None}


def _size(rule: Any, values: Values) -> int:
    size = 1
    for numbers in _given(rule, values).values():
        size *= len(numbers)
    return size


def _made(rule: Any, values: Values) -> Iterator[Any]:
    given = _given(rule, values)
    for numbers in itertools.product(*given.values()):
        yield None if rule is None else rule(**dict(zip(given, numbers, strict=True)))
