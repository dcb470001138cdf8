"""What an optimizer and a normaliser are, and what they hand back.

Both are frozen dataclasses of parameters with pure functions; their states are small `NamedTuple`s with the published
field names. For the compiled loop a state is *packed*: every per-feature quantity becomes one row with the bias as one
more feature equal to 1, every number an array of shape `(1,)`. Learners side by side in a grid are the same arrays with
one more axis, the lanes: rows `(D + 1, lanes)`, numbers `(1, lanes)`. One text, the *rule*, serves both, so their bits
agree.

A new optimizer is a file (parameters, state, `init`, `pack`, `unpack`, `rule`) and a row in the registry.
Its rule must keep a number that is not finite (NaN or infinite) from turning finite again: that is how a run finds the
step at which a learner was lost without looking at each one.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.parameters import Parameters, check_whole, is_parameter

MAX_COUNT = 2**31 - 3
"""Where a normaliser's count stays: one below would still be added to, and 2^31 − 1 must not be passed."""


class OptimizerUpdate(NamedTuple):
    """What an optimizer makes of one error.

    Attributes:
        weight_delta: to add to the weights, `(feature_dim,)`.
        bias_delta: to add to the bias, `()`.
        new_state: the optimizer's state after the step.
        metrics: `mean_step_size`, `min_step_size`, `max_step_size` over the weights, each `()`.
    """

    weight_delta: Any
    bias_delta: Any
    new_state: Any
    metrics: dict[str, Any]


class Packed(NamedTuple):
    """A state as the compiled loop carries it.

    Attributes:
        rows: per-feature quantities, each `(n,)` or `(n, lanes)`.
        numbers: float32 numbers, each `(1,)` or `(1, lanes)`.
        counts: int32 numbers, each `(1,)` or `(1, lanes)`.
    """

    rows: tuple[Any, ...]
    numbers: tuple[Any, ...] = ()
    counts: tuple[Any, ...] = ()


class Rule(Parameters):
    """Common to optimizers and normalisers: checked parameters, and their form in JSON."""

    name: ClassVar[str]
    """What the command line and the receipts call it."""
    traceable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Coerce and check every parameter.

        Raises:
            ArgumentError: not a number, NaN, infinite, out of its bounds, or vanishing in float32.
        """
        super().__post_init__()
        smallest = float(np.finfo(np.float32).tiny)
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if is_parameter(field) and isinstance(value, float) and 0 < abs(value) < smallest:
                raise ArgumentError(f"{field.name} must not vanish in float32 (below {smallest:.3g}), got {value}")

    @property
    def follows_a_rule(self) -> bool:
        """Whether its rule is all there is to it; a user's own may have `init` and `update` (or `normalize`) alone."""
        kind, base = type(self), Optimizer if isinstance(self, Optimizer) else Normalizer
        written = not getattr(getattr(kind, "rule", None), "__isabstractmethod__", False)
        steps = [name for name in ("update", "normalize", "normalize_only", "update_only") if hasattr(base, name)]
        return written and all(getattr(kind, name) is getattr(base, name) for name in steps)

    @property
    def kind(self) -> Any:
        """The type: what is compiled depends on it alone, the parameters are data."""
        return type(self)

    def to_json(self) -> dict[str, Any]:
        """Return the type and every parameter, for a receipt."""
        return {"type": self.name, **super().to_json()}


class Optimizer(Rule):
    """Base of the optimizers: how a step of the weights follows from an error."""

    def __class_getitem__(cls, state: Any) -> type[Optimizer]:
        """Return the class itself: `Optimizer[MyState]` names the state in code that moves over."""
        return cls

    normalizer_row: ClassVar[int | None] = None
    """Which packed row holds the normalisers of the step-sizes, where the optimizer has them (Autostep)."""

    @abstractmethod
    def init(self, feature_dim: int) -> Any:
        """Return the state before the first step."""

    @staticmethod
    @abstractmethod
    def pack(state: Any) -> Packed:
        """Return the state as rows of `feature_dim + 1`, the bias last."""

    @staticmethod
    @abstractmethod
    def unpack(packed: Packed) -> Any:
        """Return the state that `pack` came from."""

    @staticmethod
    @abstractmethod
    def rule(packed: Packed, error: Any, x: Any, zero: Any) -> tuple[Any, Packed, Any]:
        """Return what one error does.

        Args:
            packed: the state; lanes or none.
            error: `(1,)` or `(1, lanes)`.
            x: the features and a last one equal to 1, `(D + 1,)`, `(D + 1, 1)` or `(D + 1, lanes)`.
            zero: a run-time int32 zero, see `alberta_data.exact`.

        Returns:
            the change of the weights (sealed, the bias last), the new state, and the step-sizes: `(D + 1, …)`, or
            `(1, …)` where all are one.
        """

    def update(self, state: Any, error: Any, observation: Any) -> OptimizerUpdate:
        """Return the change of weights and bias, the new state and the step-sizes' figures.

        Args:
            state: what `init` or the last `update` returned.
            error: target minus prediction, before the step; `()` or `(1,)`.
            observation: the features, `(feature_dim,)`.
        """
        from alberta_data.learners.linear import optimizer_program

        return optimizer_program(self.kind)(state, error, observation)


class Normalizer(Rule):
    """Base of the normalisers: a running scale of each feature."""

    @abstractmethod
    def init(self, feature_dim: int) -> Any:
        """Return the state before the first observation."""

    @abstractmethod
    def pack(self, state: Any) -> Packed:
        """Return the state as rows of `feature_dim` (mean and variance first), numbers and counts."""

    @staticmethod
    @abstractmethod
    def unpack(packed: Packed) -> Any:
        """Return the state that `pack` came from."""

    @staticmethod
    @abstractmethod
    def rule(packed: Packed, x: Any, zero: Any) -> Packed:
        """Return the state after one more observation `(D,)`, `(D, 1)` or `(D, lanes)`."""

    @staticmethod
    def scale(packed: Packed, x: Any) -> Any:
        """Return `(x − mean) / (sqrt(var) + ε)`; ε is the first of the packed numbers."""
        import jax.numpy as jnp

        mean, var = packed.rows[:2]
        return (x - mean) / (jnp.sqrt(var) + packed.numbers[0])

    def normalize(self, state: Any, observation: Any) -> tuple[Any, Any]:
        """Return the observation, normalised by the state that has seen it, and that state."""
        from alberta_data.learners.linear import normalizer_program

        return normalizer_program(self.kind, "both")(self, state, observation)

    def normalize_only(self, state: Any, observation: Any) -> Any:
        """Return the observation, normalised by the state as it is."""
        from alberta_data.learners.linear import normalizer_program

        return normalizer_program(self.kind, "scale")(self, state, observation)

    def update_only(self, state: Any, observation: Any) -> Any:
        """Return the state that has seen the observation."""
        from alberta_data.learners.linear import normalizer_program

        return normalizer_program(self.kind, "rule")(self, state, observation)


def number(value: Any) -> Any:
    """Return a packed number, `(1,)` float32, from a state's scalar."""
    import jax.numpy as jnp

    return jnp.asarray(value, jnp.float32).reshape(1)


def count(value: Any) -> Any:
    """Return a packed count, `(1,)` int32, from a state's scalar."""
    import jax.numpy as jnp

    return jnp.asarray(value).astype(jnp.int32).reshape(1)


def with_bias(row: Any, bias: Any) -> Any:
    """Return a packed row: a state's per-feature array and its bias, `(D + 1,)` float32."""
    import jax.numpy as jnp

    return jnp.concatenate([jnp.asarray(row, jnp.float32), number(bias)])


def check_feature_dim(feature_dim: Any) -> int:
    """Return `feature_dim` as an int.

    Raises:
        ArgumentError: not a whole number of at least 1.
    """
    return check_whole("feature_dim", feature_dim)
