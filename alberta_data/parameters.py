"""What a parameter of a stream, an environment or a learner may be: the fields of frozen dataclasses, without jax.

A field made by `parameter` carries its help, its bounds and the command line's default. From these come the options
of the command line, the error messages and the stored spec.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from alberta_data.errors import ArgumentError

MAX_EXACT_INT = 2**53 - 1


def parameter(
    help: str,
    default: Any = dataclasses.MISSING,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    cli_default: Any = None,
) -> Any:
    """Return a dataclass field.

    Args:
        help: one line for the command line's help.
        default: its default; without one the argument is required in Python.
        minimum: the smallest value allowed.
        maximum: the largest value allowed.
        above: a value that it must exceed.
        cli_default: the command line's default where Python has none.
    """
    metadata = {"help": help, "minimum": minimum, "maximum": maximum, "above": above, "cli_default": cli_default}
    return dataclasses.field(default=default, metadata=metadata)


def is_parameter(field: dataclasses.Field[Any]) -> bool:
    """Say whether a dataclass field was made by `parameter`."""
    return "help" in field.metadata


def coerce(name: str, value: Any, kind: str, bounds: Mapping[str, Any]) -> Any:
    """Return `value` as the declared type, checked.

    Args:
        name: the parameter's name, for the message.
        value: what the caller gave; NumPy and jax scalars are taken for what they hold.
        kind: `int`, `float` or `bool`, the annotation of the field.
        bounds: `minimum`, `maximum`, `above`, each a number or None.

    Raises:
        ArgumentError: another type, out of bounds, not finite (also as float32), beyond ±(2^53 − 1).
    """
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if kind == "bool":
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} must be true or false, got {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{name} must be a number, got {value!r}")
    if kind == "int":
        number: int | float = _whole(name, value)
    else:
        number = _finite(name, value)
    _check_bounds(name, number, bounds)
    return number


def _whole(name: str, value: int | float) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ArgumentError(f"{name} must be a whole number, got {value!r}")
    number = int(value)
    if abs(number) > MAX_EXACT_INT:
        raise ArgumentError(f"{name} must be within ±(2^53 − 1), got {number}")
    return number


def _finite(name: str, value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or abs(number) > float(np.finfo(np.float32).max):
        raise ArgumentError(f"{name} must be finite, also as float32, got {value!r}")
    return number + 0.0  # −0.0 and 0.0 are one parameter


def _check_bounds(name: str, number: int | float, bounds: Mapping[str, Any]) -> None:
    minimum, maximum, above = bounds.get("minimum"), bounds.get("maximum"), bounds.get("above")
    if minimum is not None and number < minimum:
        raise ArgumentError(f"{name} must be at least {minimum}, got {number}")
    if above is not None and not number > above:
        raise ArgumentError(f"{name} must be greater than {above}, got {number}")
    if maximum is not None and number > maximum:
        raise ArgumentError(f"{name} must be at most {maximum}, got {number}")


def check_whole(name: str, value: Any) -> int:
    """Return a count given by a caller as an int; floats that are whole numbers will do.

    Raises:
        ArgumentError: not a whole number of at least 1.
    """
    try:
        whole = not isinstance(value, bool) and int(value) == value and value >= 1
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise ArgumentError(f"{name} must be a whole number of at least 1, got {value!r:.80}")
    return int(value)


def is_tracer(value: Any) -> bool:
    """Say whether a value is one of jax's tracers, whose number is not known yet."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


class Parameters:
    """Base of a frozen dataclass whose `parameter` fields are coerced and checked when it is made."""

    traceable: ClassVar[bool] = False
    """Whether a parameter may be a tracer of jax's, unchecked then: where it is data of compiled programs."""

    def __post_init__(self) -> None:
        """Coerce and check every parameter field.

        Raises:
            ArgumentError: a value that `coerce` refuses.
        """
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if is_parameter(field) and not self._is_traced(field):
                value = coerce(field.name, getattr(self, field.name), str(field.type), field.metadata)
                object.__setattr__(self, field.name, value)

    def _is_traced(self, field: dataclasses.Field[Any]) -> bool:
        traced = is_tracer(getattr(self, field.name))
        if traced and not self.traceable:
            raise ArgumentError(
                f"{field.name} of {type(self).__name__} must be known when it is made, got a value that jit, vmap or "
                "grad is tracing: make the object outside of them"
            )
        return traced

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, name → value, in their order."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if is_parameter(field)}  # type: ignore[arg-type]
