"""The streams there are, name → class: one row a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alberta_data.errors import ArgumentError, RefusedError, UnavailableError
from alberta_data.keys import PRNG
from alberta_data.parameters import is_parameter
from alberta_data.streams.abrupt import AbruptChangeStream
from alberta_data.streams.base import Stream
from alberta_data.streams.cyclic import CyclicStream
from alberta_data.streams.dynamic_scale_shift import DynamicScaleShiftStream
from alberta_data.streams.periodic import PeriodicChangeStream
from alberta_data.streams.random_walk import RandomWalkStream
from alberta_data.streams.scale_drift import ScaleDriftStream
from alberta_data.streams.scaled import ScaledStreamWrapper
from alberta_data.streams.sutton1 import SuttonExperiment1Stream

STREAMS: dict[str, type[Stream]] = {
    stream.name: stream
    for stream in (
        RandomWalkStream,
        AbruptChangeStream,
        CyclicStream,
        PeriodicChangeStream,
        ScaleDriftStream,
        DynamicScaleShiftStream,
        SuttonExperiment1Stream,
    )
}


def is_registered(stream: Any) -> bool:
    """Say whether a stream is one of these, and so made again from its spec; a subclass of one is the user's own."""
    if type(stream) is ScaledStreamWrapper:
        return is_registered(stream.inner_stream)
    return isinstance(stream, Stream) and STREAMS.get(stream.name) is type(stream)


def stream_class(name: str) -> type[Stream]:
    """Return the class of a stream's name.

    Raises:
        ArgumentError: there is none; the message lists those there are.
    """
    if name not in STREAMS:
        raise ArgumentError(f"stream must be one of {', '.join(STREAMS)}, got {name!r}")
    return STREAMS[name]


def from_definition(definition: Mapping[str, Any]) -> Stream:
    """Return the stream of a stored definition `{stream, version, parameters}`.

    Raises:
        RefusedError: not a definition, or parameters that the stream does not have.
        UnavailableError: a stream, or a version of one, that is not known here.
    """
    try:
        name, version, parameters = definition["stream"], definition["version"], definition["parameters"]
    except (KeyError, TypeError):
        raise RefusedError("a stream's definition must have stream, version and parameters") from None
    if name == ScaledStreamWrapper.name:
        found: type[Stream] | None = ScaledStreamWrapper
    else:
        found = STREAMS.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnavailableError(f"stream {name!r} is not known here; known are {', '.join(STREAMS)}")
    if version != found.version:
        raise UnavailableError(f"version {version!r} of stream {name!r} cannot be made here, only {found.version}")
    return _made(found, parameters)


def _made(found: type[Stream], parameters: Any) -> Stream:
    if found is ScaledStreamWrapper:
        names = {"inner", "feature_scales"}
    else:
        names = {f.name for f in found.__dataclass_fields__.values() if is_parameter(f)}  # type: ignore[attr-defined]
    if not isinstance(parameters, Mapping) or set(parameters) != names:
        raise RefusedError(f"the parameters of {found.name!r} must be {', '.join(sorted(names))}")
    try:
        if found is ScaledStreamWrapper:
            return ScaledStreamWrapper(from_definition(parameters["inner"]), parameters["feature_scales"])
        return found(**parameters)
    except (ArgumentError, TypeError, ValueError) as err:
        raise RefusedError(f"the parameters of {found.name!r} are not usable: {err}") from err


def from_spec(spec: Mapping[str, Any]) -> Stream:
    """Return the stream of a stored spec.

    Raises:
        RefusedError: not a usable spec of a stream.
        UnavailableError: of another kind, another generator of random numbers, or not known here.
    """
    if spec.get("kind") != "stream":
        raise UnavailableError(
            f"only datasets of kind 'stream' are made from their spec, this one is {spec.get('kind')!r}"
        )
    if spec.get("prng") != PRNG:
        raise UnavailableError(f"random numbers of {spec.get('prng')!r} cannot be made here, only {PRNG!r}")
    return from_definition(spec)
