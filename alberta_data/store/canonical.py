"""Canonical JSON (RFC 8785): one text for one value, so that a digest of it means the value.

Every id, seal and root document goes through here. Reading is stricter than `json.loads`: bounded size, depth and
number of values, no key twice, nothing that is not finite.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from alberta_data.errors import ArgumentError, RefusedError

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 32
# A root that we write has a value every twenty bytes or more; a text of nothing but brackets would fill the memory.
MAX_VALUES = 4 * 2**20
MAX_INTEGER = 2**53 - 1


class MalformedJSONError(RefusedError):
    """The text is not JSON, or not the kind of JSON that stands in a dataset."""


def dumps(value: Any) -> bytes:
    """Return the RFC 8785 serialisation of `value` as UTF-8.

    Raises:
        ArgumentError: the value has no such form: not finite, an integer beyond ±(2^53 − 1), a key that is not text,
            nesting deeper than 32, a type that JSON does not know.
    """
    _check_depth(value)
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError) as err:
        raise ArgumentError(f"a value must have a canonical JSON form, got one that has none: {err}") from None


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, 64 hex digits."""
    return hashlib.sha256(dumps(value)).hexdigest()


def loads(data: bytes, what: str = "zarr.json") -> Any:
    """Return the value of a JSON text of at most 64 MiB, depth 32 and 4 Mi values.

    Integers beyond 2^53 − 1 become doubles: RFC 8785 writes the double 1e20 as an integer.

    Args:
        data: the text, UTF-8.
        what: name of the document, for messages.

    Raises:
        RefusedError: the text passes one of the limits.
        MalformedJSONError: it is no JSON, has a key twice, or a number that is not finite.
    """
    if len(data) > MAX_BYTES:
        raise RefusedError(f"{what} must have at most {MAX_BYTES} bytes, got {len(data)}: not a dataset of ours")
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise RefusedError(f"{what} must hold at most {MAX_VALUES} values, got more: not a dataset of ours")
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant
        )
    except RecursionError:
        raise RefusedError(f"{what} must be nested at most {MAX_DEPTH} deep, got more: not a dataset of ours") from None
    except ValueError as err:
        raise MalformedJSONError(f"{what} must be JSON, got {str(err)[:200]!r}") from None
    try:
        _check_depth(value)
    except ArgumentError as err:
        raise RefusedError(f"{what}: {err}") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value


def _integer(text: str) -> int | float:
    number = int(text) if len(text) < 18 else float(text)
    return number if -MAX_INTEGER <= number <= MAX_INTEGER else float(text)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not a finite number")


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, dict | list | tuple) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ArgumentError(f"JSON must be nested at most {MAX_DEPTH} deep, got more")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(v for v in item.values() if isinstance(v, dict | list | tuple))
            elif isinstance(item, list | tuple):
                inner.extend(v for v in item if isinstance(v, dict | list | tuple))
        level = inner
