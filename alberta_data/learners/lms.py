"""Least mean squares: one step-size, the same for ever (Widrow and Hoff, 1960)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from alberta_data.exact import seal
from alberta_data.learners.base import Optimizer, Packed, check_feature_dim, number
from alberta_data.parameters import parameter


class LMSState(NamedTuple):
    """State of `LMS`.

    Attributes:
        step_size: α, `()`.
    """

    step_size: Any


@dataclass(frozen=True)
class LMS(Optimizer):
    """`w += α δ x`, `b += α δ`.

    Args:
        step_size: α, above 0.
    """

    name: ClassVar[str] = "lms"

    step_size: float = parameter("the step-size α", 0.01, above=0)

    def init(self, feature_dim: int) -> LMSState:
        """Return the state; it is the same for every `feature_dim`."""
        import jax.numpy as jnp

        check_feature_dim(feature_dim)
        return LMSState(step_size=jnp.float32(self.step_size))

    @staticmethod
    def pack(state: LMSState) -> Packed:
        """Return no row and one number."""
        return Packed((), (number(state.step_size),))

    @staticmethod
    def unpack(packed: Packed) -> LMSState:
        """Return the state that `pack` came from."""
        return LMSState(packed.numbers[0][0])

    @staticmethod
    def rule(packed: Packed, error: Any, x: Any, zero: Any) -> tuple[Any, Packed, Any]:
        """Return the step, the same state, and the one step-size."""
        step_size = packed.numbers[0]
        return seal(step_size * error * x, zero), packed, step_size
