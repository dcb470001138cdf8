"""Linear learners: a weight a feature, a bias, an optimizer, and a normaliser if wanted.

A learner is parameters and pure functions. `update` is compiled as a whole even when it is called alone: taken
operation by operation it would round differently from the loop of `replay`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

from alberta_data.errors import ArgumentError
from alberta_data.exact import zero_of
from alberta_data.learners import by_update, core
from alberta_data.learners.base import Normalizer, Optimizer, OptimizerUpdate, check_feature_dim, number, with_bias
from alberta_data.learners.lms import LMS
from alberta_data.learners.normalizers import OnlineNormalizer

COLUMNS = ("squared_error", "error", "mean_step_size", "normalizer_mean_var")
"""The columns of the metrics; the last one only with a normaliser."""


class LearnerState(NamedTuple):
    """State of a learner without a normaliser.

    Attributes:
        weights: `(feature_dim,)`, float32.
        bias: `()`.
        optimizer_state: the optimizer's.
    """

    weights: Any
    bias: Any
    optimizer_state: Any


class NormalizedLearnerState(NamedTuple):
    """State of a learner with a normaliser.

    Attributes:
        learner_state: weights, bias and the optimizer's state.
        normalizer_state: the normaliser's.
    """

    learner_state: LearnerState
    normalizer_state: Any

    @property
    def weights(self) -> Any:
        """The weights, `(feature_dim,)`; they meet normalised features."""
        return self.learner_state.weights

    @property
    def bias(self) -> Any:
        """The bias, `()`."""
        return self.learner_state.bias

    @property
    def optimizer_state(self) -> Any:
        """The optimizer's state."""
        return self.learner_state.optimizer_state


class UpdateResult(NamedTuple):
    """What one pair gave.

    Attributes:
        state: the learner's state after it.
        prediction: before it, `(1,)`.
        error: target minus prediction, `(1,)`.
        metrics: `(3,)`, with a normaliser `(4,)`; `COLUMNS` names them.
    """

    state: Any
    prediction: Any
    error: Any
    metrics: Any


@dataclass(frozen=True)
class LinearLearner:
    """A linear learner, one step at a time: `δ = y − (w·x + b)`, then what the optimizer makes of δ.

    Args:
        optimizer: how δ becomes a step; `LMS()` by default.
        normalizer: brings the features to one scale first; None for none. The state is then a
            `NormalizedLearnerState`, and the metrics have one more column.
    """

    name: ClassVar[str] = "linear"

    optimizer: Optimizer = field(default_factory=LMS)
    normalizer: Normalizer | None = None

    def __post_init__(self) -> None:
        """Check the two parts.

        Raises:
            ArgumentError: an optimizer or a normaliser of another kind.
        """
        if not isinstance(self.optimizer, Optimizer):
            raise ArgumentError(f"optimizer must be an Optimizer such as LMS(), got {self.optimizer!r}")
        if self.normalizer is not None and not isinstance(self.normalizer, Normalizer):
            raise ArgumentError(f"normalizer must be a Normalizer such as OnlineNormalizer(), got {self.normalizer!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the metrics' columns."""
        return COLUMNS[:3] if self.normalizer is None else COLUMNS

    def init(self, feature_dim: int) -> Any:
        """Return the state before the first step: no weights, no bias.

        Args:
            feature_dim: number of features, at least 1.
        """
        import jax.numpy as jnp

        size = check_feature_dim(feature_dim)
        state = LearnerState(jnp.zeros(size, jnp.float32), jnp.float32(0.0), self.optimizer.init(size))
        return state if self.normalizer is None else NormalizedLearnerState(state, self.normalizer.init(size))

    def predict(self, state: Any, x: Any) -> Any:
        """Return `w·x + b`, `(1,)`, x normalised by the state as it is.

        Args:
            state: the learner's state.
            x: the observation, `(feature_dim,)`.
        """
        if not self.follows_rules:
            return by_update.predict(self, state, x)
        return _program(self.parts, "predict")(self, state, x)

    def update(self, state: Any, x: Any, y: Any) -> UpdateResult:
        """Return what one pair does.

        Args:
            state: the learner's state.
            x: the observation, `(feature_dim,)`.
            y: the target, `(1,)` or `()`.
        """
        if not self.follows_rules:
            return UpdateResult(*by_update.update(self, state, x, check_target(y)))
        return _program(self.parts, "update")(self, state, x, y)

    @property
    def follows_rules(self) -> bool:
        """Whether both parts are written as rules, which the compiled loop takes; see `learners.base`."""
        return self.optimizer.follows_a_rule and (self.normalizer is None or self.normalizer.follows_a_rule)

    @property
    def parts(self) -> tuple[Any, Any]:
        """The types of optimizer and normaliser: what is compiled depends on them alone, the parameters are data."""
        return self.optimizer.kind, None if self.normalizer is None else self.normalizer.kind

    def pack(self, state: Any) -> core.PackedLearner:
        """Return the state as the compiled loop carries it."""
        inner = state if self.normalizer is None else state.learner_state
        return core.PackedLearner(
            with_bias(inner.weights, inner.bias),
            self.optimizer.pack(inner.optimizer_state),
            None if self.normalizer is None else self.normalizer.pack(state.normalizer_state),
        )

    def unpack(self, packed: core.PackedLearner) -> Any:
        """Return the state that `pack` came from."""
        return _unpack(self.parts, packed)

    def to_json(self) -> dict[str, Any]:
        """Return the learner in full, for a receipt."""
        normalizer = None if self.normalizer is None else self.normalizer.to_json()
        return {"type": self.name, "optimizer": self.optimizer.to_json(), "normalizer": normalizer}


@dataclass(frozen=True)
class NormalizedLinearLearner(LinearLearner):
    """A linear learner over normalised features; `LinearLearner` with a `normalizer` learns the same.

    Args:
        optimizer: how δ becomes a step; `LMS()` by default.
        normalizer: `OnlineNormalizer()` by default.
    """

    normalizer: Normalizer | None = field(default_factory=OnlineNormalizer)

    def __post_init__(self) -> None:
        """Check the two parts.

        Raises:
            ArgumentError: an optimizer or a normaliser of another kind, or no normaliser.
        """
        if self.normalizer is None:
            raise ArgumentError("normalizer must be given, got None; LinearLearner learns without one")
        super().__post_init__()


def check_target(y: Any) -> Any:
    """Return one step's target as `(1,)` float32.

    Raises:
        ArgumentError: more than one number.
    """
    import jax.numpy as jnp

    y = jnp.asarray(y, jnp.float32)
    if y.size != 1:
        raise ArgumentError(f"a learner predicts one number, got a target of shape {y.shape}; take one column")
    return y.reshape(1)


def _unpack(parts: tuple[Any, Any], packed: core.PackedLearner) -> Any:
    optimizer, normalizer = parts
    state = LearnerState(packed.weights[:-1], packed.weights[-1], optimizer.unpack(packed.optimizer))
    return state if normalizer is None else NormalizedLearnerState(state, normalizer.unpack(packed.normalizer))


@cache
def _program(parts: tuple[Any, Any], what: str) -> Any:
    """Return the compiled `update` or `predict` of all learners of these parts.

    Parameters that are not in the state (ε) go in as numbers: a constant would be folded into its neighbours.
    """
    import jax
    import jax.numpy as jnp

    def update(packed: core.PackedLearner, x: Any, y: Any) -> UpdateResult:
        taken = core.step(*parts, packed, x, y, zero_of(y, x, packed.weights))
        return UpdateResult(
            _unpack(parts, taken.state), taken.prediction, taken.error, jnp.concatenate(core.metrics(taken))
        )

    def predict(packed: core.PackedLearner, x: Any) -> Any:
        return core.predict(packed, x, zero_of(x, packed.weights))

    program: Any = jax.jit(update if what == "update" else predict)

    def run(learner: LinearLearner, state: Any, x: Any, *y: Any) -> Any:
        x = jnp.asarray(x, jnp.float32)
        if x.shape != jnp.shape(state.weights):
            raise ArgumentError(f"observation must be of shape {jnp.shape(state.weights)}, got {x.shape}")
        return program(learner.pack(state), x, *map(check_target, y))

    return run


@cache
def optimizer_program(optimizer: type[Optimizer]) -> Any:
    """Return the compiled `update(state, error, observation)` of one type of optimizer."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def update(state: Any, error: Any, observation: Any) -> OptimizerUpdate:
        x = with_bias(observation, 1.0)
        error = number(error)
        packed = optimizer.pack(state)
        zero = zero_of(error, observation, *jax.tree.leaves(packed))
        change, packed, step_sizes = optimizer.rule(packed, error, x, zero)
        over_weights = step_sizes if step_sizes.shape[0] == 1 else step_sizes[:-1]
        figures = {
            "mean_step_size": core.mean_step_size(step_sizes)[0],
            "min_step_size": jnp.min(over_weights),
            "max_step_size": jnp.max(over_weights),
        }
        return OptimizerUpdate(change[:-1], change[-1], optimizer.unpack(packed), figures)

    return update


@cache
def normalizer_program(normalizer: type[Normalizer], what: str) -> Any:
    """Return a compiled function of one type of normaliser: its `rule`, its `scale`, or `both`."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(packed: Any, x: Any) -> Any:
        if what != "scale":
            packed = normalizer.rule(packed, x, zero_of(x, *jax.tree.leaves(packed)))
        scaled = None if what == "rule" else normalizer.scale(packed, x)
        state = None if what == "scale" else normalizer.unpack(packed)
        return scaled if what == "scale" else state if what == "rule" else (scaled, state)

    def call(self: Normalizer, state: Any, observation: Any) -> Any:
        return run(self.pack(state), jnp.asarray(observation, jnp.float32))

    return call
