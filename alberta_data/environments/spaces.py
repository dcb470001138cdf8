"""How a value of a Gymnasium space lies in a row.

Two layouts: `published` (`Box` → its values in C order, `Discrete` → one number, `MultiDiscrete` → one number a
component) and `one-hot` (`gymnasium.spaces.flatten`, which also lays out `Dict`, `Tuple`, `MultiBinary`, `OneOf`).
A row keeps the space's own dtype, so that images stay bytes; one-hot digits are int8.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from alberta_data.errors import ArgumentError

PUBLISHED, ONE_HOT = "published", "one-hot"
_STORABLE = {"bool", *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64))} | {
    f"float{size}" for size in (16, 32, 64)
}
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._+-]")


@dataclass(frozen=True)
class Layout:
    """Where the values of a space lie in a row.

    Attributes:
        space: the space.
        shape: shape that `convert` gives a value; its C order is the row.
        dtype: dtype of the row.
        columns: a name for each number of the row.
        convert: an environment's value → an array of that shape and dtype; for shape `()` an int.
    """

    space: spaces.Space
    shape: tuple[int, ...]
    dtype: np.dtype
    columns: tuple[str, ...]
    convert: Callable[[Any], Any]

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.columns)

    @property
    def pack(self) -> Callable[[Any], bytes]:
        """Return the function from what `convert` gave to the bytes of the row: a copy, and the quickest one."""
        if self.shape or isinstance(self.space, spaces.Box):
            return np.ndarray.tobytes
        return partial(int.to_bytes, length=self.dtype.itemsize, byteorder=sys.byteorder, signed=self.dtype.kind == "i")

    def vector(self, value: Any) -> np.ndarray:
        """Return a value as the float32 vector that policies and learners see, `(width,)`, never sharing memory."""
        return np.array(self.convert(value), self.dtype).reshape(-1).astype(np.float32)


def layout_of(space: spaces.Space, flatten: str = PUBLISHED, name: str = "observation") -> Layout:
    """Return the layout of a space.

    Args:
        space: a Gymnasium space.
        flatten: `published` or `one-hot`.
        name: what the space is; names of columns and places in messages begin with it.

    Raises:
        ArgumentError: the space can't be laid out so; the message begins `Unsupported space type: ` and names the
            place inside the space.
    """
    _refuse_unfit(space, flatten, name)
    columns = tuple(_UNNAMEABLE.sub("_", column)[:64] for column in _columns(space, flatten, name))
    if not columns:
        raise ArgumentError(f"Unsupported space type: {space} at {name} has no numbers in it; a row needs one")
    if len(set(columns)) < len(columns):
        columns = tuple(f"{name}.{i}" for i in range(len(columns)))
    if isinstance(space, spaces.Box):
        return _array_layout(space, np.dtype(space.dtype), columns, name)
    if flatten == ONE_HOT:
        dtype = _one_hot_dtype(space)
        return Layout(space, (len(columns),), dtype, columns, _one_hot_converter(space, dtype, len(columns), name))
    dtype = np.dtype(space.dtype or np.int64)
    if isinstance(space, spaces.Discrete):
        return Layout(space, (), dtype, columns, lambda value: as_integer(value, name))
    return _array_layout(space, dtype, columns, name)


def _array_layout(space: spaces.Space, dtype: np.dtype, columns: tuple[str, ...], name: str) -> Layout:
    shape = tuple(space.shape or ())
    return Layout(space, shape, dtype, columns, _array_converter(shape, dtype, name))


def parts(space: spaces.Space, place: str) -> Iterator[tuple[str, spaces.Space]]:
    """Yield the place and the space of each part directly inside a composite space; nothing for any other."""
    if isinstance(space, spaces.Dict):
        yield from ((f"{place}[{key!r}]", part) for key, part in space.spaces.items())
    elif isinstance(space, spaces.Tuple | spaces.OneOf):
        yield from ((f"{place}[{i}]", part) for i, part in enumerate(space.spaces))


def _refuse_unfit(space: spaces.Space, flatten: str, place: str) -> None:
    """Refuse what has no fixed width, wherever it lies, and what the published layout doesn't know."""
    for inner, part in parts(space, place):
        _refuse_unfit(part, ONE_HOT, inner)
    kind = type(space).__name__
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
        if str(np.dtype(space.dtype)) not in _STORABLE:
            raise ArgumentError(f"Unsupported space type: {kind} of {space.dtype} at {place} can't be stored")
    elif not isinstance(space, spaces.MultiBinary | spaces.Dict | spaces.Tuple | spaces.OneOf):
        raise ArgumentError(
            f"Unsupported space type: {kind} at {place} has no fixed width; wrap the environment so that it gives a Box"
        )
    elif flatten == PUBLISHED:
        raise ArgumentError(
            f"Unsupported space type: {kind} at {place} is not in the published layout; flatten it as one-hot"
        )


def _columns(space: spaces.Space, flatten: str, name: str) -> Iterator[str]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _columns(part, flatten, f"{name}.{key}")
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _columns(part, flatten, f"{name}.{i}")
    elif isinstance(space, spaces.OneOf):
        yield f"{name}.which"
        yield from (f"{name}.{i}" for i in range(max(_width(part) for part in space.spaces)))
    elif isinstance(space, spaces.Discrete):
        start = int(space.start)
        yield from [name] if flatten == PUBLISHED else [f"{name}.is{start + i}" for i in range(int(space.n))]
    elif isinstance(space, spaces.MultiDiscrete) and flatten == ONE_HOT:
        starts = np.broadcast_to(space.start, space.nvec.shape)
        for index in np.ndindex(space.nvec.shape):
            place, start = ".".join(map(str, index)), int(starts[index])
            yield from (f"{name}.{place}.is{start + i}" for i in range(int(space.nvec[index])))
    else:
        indices = product(*map(range, space.shape or ()))
        yield from (".".join([name, *map(str, index)]) for index in indices)


def _width(space: spaces.Space) -> int:
    return sum(1 for _ in _columns(space, ONE_HOT, ""))


def _one_hot_dtype(space: spaces.Space) -> np.dtype:
    """Return the dtype that holds every part's numbers: a Box's own, int8 for digits."""
    inner = [_one_hot_dtype(part) for _, part in parts(space, "")]
    if isinstance(space, spaces.OneOf):
        inner.append(np.min_scalar_type(len(space.spaces) - 1))
    if inner:
        return np.result_type(*inner)
    return np.dtype(np.int8) if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else np.dtype(space.dtype)


def as_integer(value: Any, name: str) -> int:
    """Return a number, or an array of one, as an int; what has a fraction is refused, not cut."""
    if isinstance(value, int | np.integer):
        return int(value)
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "biuf":
        number = array.reshape(())[()]
        if number == np.floor(number) and np.isfinite(number):
            return int(number)
    raise ArgumentError(f"{name} must be one integer, as its space says, got {value!r}")


def _array_converter(shape: tuple[int, ...], dtype: np.dtype, name: str) -> Callable[[Any], np.ndarray]:
    """Return a converter that passes what fits, casts what loses nothing but rounding, and refuses the rest."""

    def convert(value: Any) -> np.ndarray:
        array = value if type(value) is np.ndarray else np.asarray(value)
        if array.dtype == dtype and array.shape == shape:
            return array
        if array.size != prod(shape):
            raise ArgumentError(f"{name} must have shape {shape}, as its space says, got {array.shape}")
        if array.dtype.kind not in "biuf":
            raise ArgumentError(f"{name} must hold {dtype} numbers, as its space says, got {value!r}")
        with np.errstate(all="ignore"):
            cast = array.astype(dtype).reshape(shape)
        if not np.can_cast(array.dtype, dtype, "same_kind") and not np.array_equal(cast, array.reshape(shape)):
            raise ArgumentError(f"{name} must hold {dtype} numbers, as its space says, got {array.dtype}: {value!r}")
        return cast

    return convert


def _one_hot_converter(space: spaces.Space, dtype: np.dtype, width: int, name: str) -> Callable[[Any], np.ndarray]:
    def convert(value: Any) -> np.ndarray:
        try:
            row = np.asarray(spaces.flatten(space, value))
        except (IndexError, KeyError, TypeError, ValueError) as err:
            raise ArgumentError(f"{name} must lie in {space}, got {value!r}") from err
        if row.shape != (width,):
            raise ArgumentError(f"{name} must lie in {space}, got {value!r}")
        return row.astype(dtype, copy=False)

    return convert
