"""What a stream is, and the four phases that one is written in.

A stream's steps depend on each other only through its keys and its drifting state. So a definition is cut in four:

    chain   k₀ → k₁ → k₂ → …             the keys of all steps, one after another (here, the same for every stream)
    draw    keys → numbers               all numbers of all steps at once
    drift   state, numbers → state, seen the small recursion, one step after another (or at once, where there is none)
    emit    seen, numbers → x, y         all observations and targets at once

`phases.py` puts them together in two ways, one step and a block of steps, whose bits agree. In `draw` and `emit`
arrays may have leading axes of steps, the features come last; so one text serves both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

from alberta_data.blocks import TimeStep
from alberta_data.errors import ArgumentError
from alberta_data.keys import PRNG, Words, as_key, check_seed
from alberta_data.parameters import Parameters, check_whole

__all__ = ["MAX_STEPS", "ScanStream", "Stream", "TimeStep"]

MAX_STEPS = 2**31 - 1


@runtime_checkable
class ScanStream(Protocol):
    """Any stream that can be scanned: ours, and a user's own."""

    @property
    def feature_dim(self) -> int:
        """Number of features of an observation."""
        ...

    def init(self, key: Any) -> Any:
        """Return the state before step 0."""
        ...

    def step(self, state: Any, idx: Any) -> tuple[TimeStep, Any]:
        """Return one step and the state after it; `idx` may be ignored."""
        ...


class Stream(Parameters, ABC):
    """Base of the streams defined here: a frozen dataclass of parameters, with the phases as pure methods.

    A subclass gives `init`, `draw`, `drift` and `emit`, and the class attributes below; states are `NamedTuple`s with
    the fields `key` and `step_count`.
    """

    feature_dim: int

    name: ClassVar[str]
    """What the command line and the spec call it."""
    version: ClassVar[int] = 1
    """Raised whenever one number of the stream could change."""
    formula: ClassVar[str]
    """The definition in one line."""
    paper: ClassVar[str]
    """Where it was introduced or is discussed."""
    recursive: ClassVar[bool] = True
    """Whether `drift` needs the state that the step before left."""

    @abstractmethod
    def initial(self, key: Words) -> Any:
        """Return the state before step 0 from the two words of a key."""

    @abstractmethod
    def draw(self, key: Words) -> Any:
        """Return which numbers the steps that begin with `key` need: a tuple of `keys.Normal`."""

    @abstractmethod
    def drift(self, state: Any, drawn: Any, key: Words, zero: Any) -> tuple[Any, Any]:
        """Return the state after one step's change, and what `emit` will see of it.

        Args:
            state: the state before; its `step_count` is this step's index.
            drawn: this step's numbers, a tuple like the one that `draw` returned.
            key: this step's key, for numbers that are rarely drawn.
            zero: a run-time int32 zero (`exact.zero_of`), to seal products with. What `draw` gave are products too.

        Returns:
            the state, and the hidden values of this step: name → array, the features (if any) last.
        """

    @abstractmethod
    def emit(self, seen: Any, drawn: Any, zero: Any) -> tuple[Any, Any]:
        """Return observations `(*steps, feature_dim)` and targets `(*steps, 1)`."""

    def init(self, key: Any) -> Any:
        """Return the state before step 0.

        Args:
            key: a threefry key, typed or raw; it is carried on as a key of this package's implementation.

        Raises:
            ArgumentError: a key of another implementation, or more than one.
        """
        from alberta_data.streams import phases

        single = as_key(key)
        if single.ndim:
            raise ArgumentError(
                f"key must be one key, got {single.shape}: jax.vmap over them, or run_learning_loop_batched"
            )
        return phases.initial(self, single)

    def step(self, state: Any, idx: Any = None) -> tuple[TimeStep, Any]:
        """Return one step and the state after it.

        Args:
            state: what `init` or `step` returned.
            idx: accepted and ignored; the state counts its own steps.
        """
        from alberta_data.streams import phases

        return phases.step(self, state)

    @property
    def in_phases(self) -> bool:
        """Whether blocks are made in the four phases; else, where a subclass has its own, by a scan over `step`."""
        return type(self).init is Stream.init and type(self).step is Stream.step

    def unwrap(self, state: Any) -> Any:
        """Return the state that the phases work on, with the fields `key` and `step_count`."""
        return state

    def wrap(self, state: Any) -> Any:
        """Undo `unwrap`."""
        return state

    def definition(self) -> dict[str, Any]:
        """Return what the numbers follow from, without seed and length: stream, version, parameters."""
        return {"stream": self.name, "version": self.version, "parameters": self.to_json()}

    def spec(self, seed: int, steps: int) -> dict[str, Any]:
        """Return all that determines a dataset's numbers, in the form in which it is stored.

        Raises:
            ArgumentError: `seed` or `steps` is out of range.
        """
        return {
            "kind": "stream",
            **self.definition(),
            "prng": PRNG,
            "seed": check_seed(seed),
            "steps": check_steps(steps),
        }

    @property
    def noise_floor(self) -> float | None:
        """The variance of the target's own noise, which no learner gets below; None where it is not known."""
        noise_std = getattr(self, "noise_std", None)
        return None if noise_std is None else float(noise_std) ** 2

    def change_points(self, steps: int) -> range | None:
        """Return the steps below `steps` at which the weights jump, or None where they drift at every step."""
        return None


def definition_of(stream: Any) -> dict[str, Any]:
    """Return a stream's definition; of one of the user's own, its class as text, which is never imported."""
    from alberta_data.streams.registry import is_registered

    if is_registered(stream):
        return stream.definition()  # type: ignore[no-any-return]
    return {"stream": f"{type(stream).__module__}.{type(stream).__qualname__}", "version": 1, "parameters": {}}


def check_steps(steps: Any) -> int:
    """Return `steps` as an int.

    Raises:
        ArgumentError: not a whole number from 1 to 2^31 − 1, where the streams' int32 counter ends.
    """
    count = check_whole("steps", steps)
    if count > MAX_STEPS:
        raise ArgumentError(
            f"steps must be at most {MAX_STEPS} (2^31 − 1, the streams' counter), got {count}: "
            "split it over several seeds"
        )
    return count


def check_stream(stream: Any) -> None:
    """Check that something follows `ScanStream`.

    Raises:
        ArgumentError: it lacks `feature_dim`, `init` or `step`.
    """
    if not all(hasattr(stream, name) for name in ("feature_dim", "init", "step")):
        raise ArgumentError(
            f"a stream must have feature_dim, init(key) and step(state, idx), got {stream!r:.80}: "
            "collect_trajectory takes an environment's"
        )
