"""Any stream, its features multiplied by fixed scales."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.parameters import is_tracer
from alberta_data.streams import linear
from alberta_data.streams.base import Stream, TimeStep, definition_of


class ScaledStreamState(NamedTuple):
    """The state of the wrapped stream."""

    inner_state: Any


class ScaledStreamWrapper(Stream):
    """Multiplies each observation of a stream by `feature_scales`; the target is untouched.

    Args:
        inner_stream: any stream that follows `ScanStream`.
        feature_scales: `(feature_dim,)`, finite; rounded to float32 before they are used or stored.

    Raises:
        ArgumentError: a length that differs from the stream's `feature_dim`, or a scale that is not finite.
    """

    name = "scaled"
    formula = "x = feature_scales · x of the inner stream; y = y of the inner stream"
    paper = "alberta_framework (2025), streams.synthetic"

    def __init__(self, inner_stream: Any, feature_scales: Any):
        if is_tracer(feature_scales):
            raise ArgumentError("feature_scales must be known when the stream is made, got ones that jax is tracing")
        with np.errstate(over="ignore"):
            scales = np.asarray(feature_scales, np.float32)
        if scales.shape != (inner_stream.feature_dim,):
            raise ArgumentError(
                f"the length of feature_scales must match the stream's feature_dim, got {scales.shape} scales "
                f"for {inner_stream.feature_dim} features"
            )
        if not np.isfinite(scales).all():
            raise ArgumentError(f"feature_scales must be finite, also as float32, got {scales.tolist()}")
        self._inner = inner_stream
        self._scales = tuple(float(scale) + 0.0 for scale in scales)

    @property
    def inner_stream(self) -> Any:
        """The wrapped stream."""
        return self._inner

    @property
    def feature_scales(self) -> Any:
        """The scales, a float32 array `(feature_dim,)`."""
        import jax.numpy as jnp

        return jnp.asarray(self._scales, jnp.float32)

    @property
    def feature_dim(self) -> int:  # type: ignore[override]
        """Number of features of the wrapped stream."""
        return int(self._inner.feature_dim)

    @property
    def noise_floor(self) -> float | None:
        """That of the wrapped stream, whose targets these are."""
        return getattr(self._inner, "noise_floor", None)

    @property
    def in_phases(self) -> bool:
        """Whether the wrapped stream is one of ours, and nothing of this is a subclass's own."""
        kind = type(self)
        as_here = kind.init is ScaledStreamWrapper.init and kind.step is ScaledStreamWrapper.step
        return as_here and isinstance(self._inner, Stream) and self._inner.in_phases

    @property
    def recursive(self) -> bool:  # type: ignore[override]
        """Whether the wrapped stream's drift is a recursion."""
        return bool(self._inner.recursive)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScaledStreamWrapper):
            return NotImplemented
        return (self._inner, self._scales) == (other._inner, other._scales)

    def __hash__(self) -> int:
        return hash((ScaledStreamWrapper, self._inner, self._scales))

    def __repr__(self) -> str:
        return f"ScaledStreamWrapper({self._inner!r}, {self._scales!r})"

    def to_json(self) -> dict[str, Any]:
        """Return the wrapped stream's definition and the scales, each float32 written as its double."""
        return {"inner": definition_of(self._inner), "feature_scales": list(self._scales)}

    def change_points(self, steps: int) -> range | None:
        """Those of the wrapped stream."""
        return self._inner.change_points(steps) if isinstance(self._inner, Stream) else None

    def init(self, key: Any) -> ScaledStreamState:
        """Return the state before step 0; see `Stream.init`."""
        return ScaledStreamState(self._inner.init(key))

    def step(self, state: ScaledStreamState, idx: Any = None) -> tuple[TimeStep, ScaledStreamState]:
        """Return one step and the state after it; see `Stream.step`."""
        if self.in_phases:
            return super().step(state, idx)
        step, inner_state = self._inner.step(state.inner_state, idx)
        return TimeStep(step.observation * self.feature_scales, step.target), ScaledStreamState(inner_state)

    def unwrap(self, state: ScaledStreamState) -> Any:
        """Return the state of the stream that draws."""
        return self._inner.unwrap(state.inner_state)

    def wrap(self, state: Any) -> ScaledStreamState:
        """Undo `unwrap`."""
        return ScaledStreamState(self._inner.wrap(state))

    def initial(self, key: Any) -> Any:
        """Delegate to the wrapped stream."""
        return self._inner.initial(key)

    def draw(self, key: Any) -> Any:
        """Delegate to the wrapped stream."""
        return self._inner.draw(key)

    def drift(self, state: Any, drawn: Any, key: Any, zero: Any) -> tuple[Any, Any]:
        """Delegate to the wrapped stream."""
        return self._inner.drift(state, drawn, key, zero)  # type: ignore[no-any-return]

    def emit(self, seen: Any, drawn: Any, zero: Any) -> tuple[Any, Any]:
        """Scale the wrapped stream's observations."""
        from jax import lax

        observations, targets = self._inner.emit(seen, drawn, zero)
        # The barrier keeps the scales from merging with the constant of the inner stream's features.
        scales = linear.along_steps(np.asarray(self._scales, np.float32), observations)
        return lax.optimization_barrier(observations) * scales, targets


def make_scale_range(
    feature_dim: int, min_scale: float = 0.001, max_scale: float = 1000.0, log_spaced: bool = True
) -> Any:
    """Return `feature_dim` scales from `min_scale` to `max_scale`, a float32 jax array `(feature_dim,)`.

    The published `jnp.logspace` gives other bits on another processor. These are computed by NumPy, in the float32
    steps that give its reference rows: a line between the rounded logarithms, then powers of ten in float64.

    Args:
        feature_dim: how many, at least 1.
        min_scale: the first; greater than 0 where log-spaced.
        max_scale: the last.
        log_spaced: evenly spaced logarithms, else evenly spaced scales.

    Raises:
        ArgumentError: a value out of its range.
    """
    import jax.numpy as jnp

    _check_range(feature_dim, min_scale, max_scale, log_spaced)
    if not log_spaced:
        return jnp.asarray(_line(min_scale, max_scale, feature_dim))
    return jnp.asarray(
        np.power(10.0, _line(np.log10(min_scale), np.log10(max_scale), feature_dim).astype(np.float64)), jnp.float32
    )


def _line(first: float, last: float, size: int) -> np.ndarray:
    """Return `first · (1 − i/n) + last/n · i` for i = 0 … n = size − 1, rounded once at the end."""
    first32, last32 = np.float32(first), np.float32(last)
    if size == 1:
        return np.array([first32])
    index = np.arange(size - 1, dtype=np.float32)
    share = np.float32(1) / np.float32(size - 1)
    left = np.float32(1) - index / np.float32(size - 1)
    slope = np.float64(last32 * share)
    points = np.float64(first32) * left.astype(np.float64) + slope * index.astype(np.float64)
    return np.append(points.astype(np.float32), last32)


def even_scales(feature_dim: int, min_scale: float, max_scale: float, log_spaced: bool) -> np.ndarray:
    """Return evenly spaced scales computed in float64, rounded to float32 at the end: the command line's range.

    Raises:
        ArgumentError: a value out of its range.
    """
    _check_range(feature_dim, min_scale, max_scale, log_spaced)
    if log_spaced:
        return np.logspace(np.log10(min_scale), np.log10(max_scale), feature_dim).astype(np.float32)
    return np.linspace(min_scale, max_scale, feature_dim).astype(np.float32)


def _check_range(feature_dim: int, min_scale: float, max_scale: float, log_spaced: bool) -> None:
    if feature_dim < 1:
        raise ArgumentError(f"feature_dim must be at least 1, got {feature_dim}")
    limit = float(np.finfo(np.float32).max)
    if not (abs(min_scale) <= limit and abs(max_scale) <= limit):
        raise ArgumentError(f"min_scale and max_scale must be finite, also as float32, got {min_scale} and {max_scale}")
    if log_spaced and not (min_scale > 0 and max_scale > 0):
        raise ArgumentError(f"log-spaced scales must be greater than 0, got {min_scale} and {max_scale}")
