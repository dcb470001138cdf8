"""What is written into a dataset: a stream or an environment with a seed and a length, as blocks and states.

The writer sees one shape of thing, whatever makes the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from alberta_data.blocks import Block
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.keys import PRNG, check_seed
from alberta_data.store.layout import ArrayDeclaration
from alberta_data.streams.base import Stream, check_steps, check_stream
from alberta_data.streams.registry import is_registered
from alberta_data.xla import CAN_CHANGE_A_BIT, made_with

State = Mapping[str, np.ndarray]
Stored = Callable[[str, int, int], np.ndarray]


class Part(NamedTuple):
    """A block, the state after it, and new rows of the arrays whose length is not known before."""

    block: Block
    state: State
    extra: Mapping[str, np.ndarray]


class Recording(Protocol):
    """What a dataset is made from.

    Attributes:
        spec: all that determines the numbers.
        declarations: the arrays.
        initial_state: the state before step 0, path → array.
        made_with: versions and settings.
        decisive: entries of `made_with` that can change a bit.
        feature_dim: features of a step.
    """

    spec: dict[str, Any]
    declarations: list[ArrayDeclaration]
    initial_state: State
    made_with: dict[str, Any]
    decisive: tuple[str, ...]
    feature_dim: int

    def parts(self, step: int, state: State, stored: Stored | None = None) -> Iterator[Part]:
        """Yield everything from `step` on, given the state before it.

        Args:
            step: the first step.
            state: the state before it.
            stored: reads what was stored before `step`: array name, first row, row after the last → rows.
        """
        ...


class StreamRecording:
    """A stream of ours, or one of the user's own that follows `ScanStream`.

    Args:
        stream: the stream.
        seed: 0 … 2^32 − 1.
        steps: its length.
        block_steps: most steps of a block; changes no bit.
        parameters: what the spec says of a stream of the user's own, JSON.

    Raises:
        ArgumentError: a number out of range, or not a stream.
    """

    decisive: tuple[str, ...] = CAN_CHANGE_A_BIT

    def __init__(
        self,
        stream: Any,
        seed: int,
        steps: int,
        block_steps: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ):
        from alberta_data import generation

        check_stream(stream)
        generation.check_block_steps(block_steps)
        self.stream, self.seed, self.steps, self._block_steps = (
            stream,
            check_seed(seed),
            check_steps(steps),
            block_steps,
        )
        self.spec = spec_of(stream, seed, steps, parameters)
        self._first = generation.initial_state(stream, seed)
        self.initial_state: State = generation.state_arrays(self._first)
        self.made_with = made_with()
        self.feature_dim = int(stream.feature_dim)
        self.declarations = self._declared()

    def _declared(self) -> list[ArrayDeclaration]:
        if isinstance(self.stream, Stream) and self.stream.in_phases:
            return [
                ArrayDeclaration("observations", "float32", (self.feature_dim,)),
                ArrayDeclaration("targets", "float32", (1,)),
            ]
        import jax

        step, _ = jax.eval_shape(lambda state: self.stream.step(state, 0), self._first)
        width = int(np.prod(step.target.shape, dtype=int))
        return [
            ArrayDeclaration("observations", np.dtype(step.observation.dtype).name, tuple(step.observation.shape)),
            ArrayDeclaration("targets", np.dtype(step.target.dtype).name, (width,)),
        ]

    def parts(self, step: int, state: State, stored: Stored | None = None) -> Iterator[Part]:
        """Yield everything from `step` on; see `Recording.parts`."""
        from alberta_data import generation

        before = generation.state_from_arrays(self.stream, state) if step else self._first
        made = generation.blocks(
            self.stream, self.seed, self.steps, start=step, state=before, block_steps=self._block_steps
        )
        for block, after in made:
            yield Part(block, generation.state_arrays(after), {})


class EnvironmentRecording:
    """An environment of gymnasium's, with a policy and a seed.

    Args:
        parameters: an `EnvironmentStream`.
        seed: 0 … 2^32 − 1.
        steps: its length.
        allow_import: modules that may be imported for the environment's id.

    Raises:
        ArgumentError: the environment, a space or the policy is refused.
    """

    def __init__(self, parameters: Any, seed: int, steps: int, allow_import: tuple[str, ...] = ()):
        from alberta_data.environments.collection import Collection
        from alberta_data.environments.making import versions

        self.spec = parameters.spec(seed, steps)
        self.steps = steps
        self._collection = Collection(parameters, seed, allow_import)
        self.initial_state: State = self._collection.initial_state
        self.feature_dim = self._collection.feature_dim
        extra = versions(parameters)
        self.made_with = {**made_with(), **extra}
        self.decisive = ("platform", "cpu", *extra)
        self.declarations = [
            ArrayDeclaration(
                name,
                form.dtype.name,
                () if form.columns is None else (len(form.columns),),
                columns=form.columns,
                by_step=name != "final_observations",
            )
            for name, form in self._collection.arrays.items()
        ]

    def parts(self, step: int, state: State, stored: Stored | None = None) -> Iterator[Part]:
        """Yield everything from `step` on; see `Recording.parts`."""
        collector = None
        if step:
            from alberta_data.environments.resuming import resumed

            assert stored is not None
            collector = resumed(self._collection, state, stored)
        for got in self._collection.blocks(self.steps, collector=collector):
            yield Part(got.block, got.state, {"final_observations": got.final_observations})


def spec_of(stream: Any, seed: int, steps: int, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the spec of a stream, an environment, or a stream of the user's own.

    Raises:
        ArgumentError: `seed` or `steps` is out of range.
    """
    if isinstance(stream, EnvironmentStream) or is_registered(stream):
        return dict(stream.spec(seed, steps))
    wrapped = stream.to_json() if isinstance(stream, Stream) else {}
    return {
        "kind": "external",
        "stream": f"{type(stream).__module__}.{type(stream).__qualname__}",
        "version": 1,
        "parameters": {**wrapped, **(parameters or {})},
        "prng": PRNG,
        "seed": check_seed(seed),
        "steps": check_steps(steps),
    }


def recording(
    stream: Any,
    seed: int,
    steps: int,
    *,
    block_steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    allow_import: tuple[str, ...] = (),
) -> Recording:
    """Return what a stream or an environment is written from."""
    if isinstance(stream, EnvironmentStream):
        return EnvironmentRecording(stream, seed, steps, allow_import)
    return StreamRecording(stream, seed, steps, block_steps, parameters)


def made_from_spec(spec: Mapping[str, Any], allow_import: tuple[str, ...] = ()) -> Any:
    """Return the stream or environment of a stored spec; nothing is imported for a stranger's one.

    Raises:
        RefusedError: not a usable spec.
        UnavailableError: it cannot be made here: frozen or external data, another version, a policy of the user's.
    """
    if spec.get("kind") == "environment":
        from alberta_data.environments.making import check_stranger

        found = EnvironmentStream.from_spec(spec)
        check_stranger(found, allow_import)
        return found
    from alberta_data.streams.registry import from_spec

    return from_spec(spec)
