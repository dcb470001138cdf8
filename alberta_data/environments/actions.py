"""Actions: from what a policy returns to what the environment takes, and to the row that is stored."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from alberta_data.environments.spaces import PUBLISHED, Layout, as_integer, layout_of
from alberta_data.errors import ArgumentError


class ActionCodec:
    """What actions of a space look like to the environment, to a policy and on disk.

    `Discrete` actions reach the environment as ints, `MultiDiscrete` and `MultiBinary` as arrays of the space's dtype,
    `Box` actions as float32 arrays (float64 bounds included, as published), everything else as the policy gave it.

    Args:
        space: the action space.
    """

    def __init__(self, space: spaces.Space):
        self.space = space
        self._is_array = isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary)
        self.dtype = np.dtype(space.dtype or object)
        if isinstance(space, spaces.Box) and self.dtype == np.float64:
            self.dtype = np.dtype(np.float32)

    def for_environment(self, value: Any) -> Any:
        """Return one of `take`'s actions as the environment takes it; it may keep or change what it gets."""
        if isinstance(self.space, spaces.Discrete):
            return int(value)
        return np.array(value, self.dtype) if self._is_array else value

    def many_for_environment(self, values: np.ndarray) -> list[Any]:
        """Return a block of actions, one each step, as the environment takes them."""
        return values.tolist() if isinstance(self.space, spaces.Discrete) else list(values.copy())

    def coerce(self, action: Any) -> Any:
        """Return what a policy gave (a number, a list, an array) as the environment takes it.

        Raises:
            ArgumentError: it has another shape than the space's actions, or is no such number.
        """
        if isinstance(self.space, spaces.Discrete):
            number, start, n = as_integer(action, "action"), int(self.space.start), int(self.space.n)
            if not start <= number < start + n:
                raise ArgumentError(f"action must be from {start} to {start + n - 1}, got {number}")
            return number
        if not self._is_array:
            return action
        shape = tuple(self.space.shape or ())
        array = np.asarray(action)
        if array.size != prod(shape):
            raise ArgumentError(f"action must have shape {shape}, as the action space says, got {array.shape}")
        if array.dtype.kind not in "biuf":
            raise ArgumentError(f"action must hold numbers, as the action space says, got {action!r}")
        return np.array(array, self.dtype).reshape(shape)

    def layout(self, flatten: str = PUBLISHED) -> Layout:
        """Return where an action lies in a row.

        Raises:
            ArgumentError: the space can't be laid out so.
        """
        space = self.space
        if isinstance(space, spaces.Box) and self.dtype != space.dtype:
            space = spaces.Box(-np.inf, np.inf, space.shape, np.float32)
        return layout_of(space, flatten, "action")

    def from_row(self, row: np.ndarray, flatten: str = PUBLISHED) -> Any:
        """Return the action that a stored row holds, as the environment takes it."""
        if isinstance(self.space, spaces.Box) or (flatten == PUBLISHED and self._is_array):
            return np.array(row, self.dtype).reshape(self.space.shape)
        if flatten == PUBLISHED:
            return int(row[0])
        return self.coerce(spaces.unflatten(self.space, row))
