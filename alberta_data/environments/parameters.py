"""What determines the numbers collected from an environment, and how a spec holds it.

Read and written without gymnasium: an environment's id is text here. What the id means is asked in `making.py`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from alberta_data.environments.policy_text import parse_policy
from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.keys import PRNG, check_seed
from alberta_data.parameters import MAX_EXACT_INT, Parameters, coerce, parameter

KIND = "environment"
VERSION = 1
"""The collector's own number, raised whenever one number it stores could change."""

FLATTENINGS = ("published", "one-hot")
_ID = re.compile(r"(?:[A-Za-z0-9_.]{1,100}:)?[A-Za-z0-9_./+-]{1,128}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CUSTOM = re.compile(r"custom:[^\x00-\x1f\x7f]{1,200}")


class PredictionMode(StrEnum):
    """What a step asks a learner to predict."""

    REWARD = "reward"
    NEXT_STATE = "next_state"
    VALUE = "value"


@dataclass(frozen=True)
class EnvironmentStream(Parameters):
    """An environment, a policy and a way to lay out what is seen: all but seed and length.

    Attributes:
        env_id: an id that gymnasium has registered.
        env_args: arguments of the environment, each a JSON scalar.
        wrappers: names in `gymnasium.wrappers`, innermost first.
        policy: `random`, `constant:A`, `epsilon:E:A`, or a function from a float32 observation to an action, which a
            spec can only record by name (`custom:module.name`).
        mode: what a step asks for, the default of every replay: `reward`, `next_state`, `value`.
        include_action_in_features: whether the action follows the observation in the features, by default.
        gamma: discount of `value`.
        flatten: `published` or `one-hot`, the layout of observations and actions.
        action_scale: where the random policy draws between for an action without bounds.
    """

    name: ClassVar[str] = KIND
    version: ClassVar[int] = VERSION

    env_id: str
    env_args: Mapping[str, Any] = field(default_factory=dict, hash=False)
    wrappers: tuple[str, ...] = ()
    policy: str | Callable[[Any], Any] = "random"
    mode: PredictionMode = PredictionMode.REWARD
    include_action_in_features: bool = parameter("put the action after the observation in the features", True)
    gamma: float = parameter("discount of the value mode", 0.99, minimum=0.0, maximum=1.0)
    flatten: str = "published"
    action_scale: float | None = None

    def __post_init__(self) -> None:
        """Coerce and check every field.

        Raises:
            ArgumentError: a field that can't be; the message begins with its name.
        """
        super().__post_init__()
        scale = self.action_scale
        checked = {
            "env_id": _matching("env_id", self.env_id, _ID),
            "env_args": {_matching("env_args", k, _NAME): _scalar(k, v) for k, v in dict(self.env_args).items()},
            "wrappers": _wrappers(self.wrappers),
            "policy": self.policy if callable(self.policy) else _policy_text(self.policy),
            "mode": PredictionMode(_one_of("mode", self.mode, [str(mode) for mode in PredictionMode])),
            "flatten": _one_of("flatten", self.flatten, FLATTENINGS),
            "action_scale": scale if scale is None else coerce("action_scale", scale, "float", {"above": 0}),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as a spec holds them, name → JSON value, in their order."""
        named = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "env_id"}
        return {
            **named,
            "env_args": dict(self.env_args),
            "wrappers": list(self.wrappers),
            "policy": self.policy if isinstance(self.policy, str) else _name_of(self.policy),
            "mode": str(self.mode),
        }

    def definition(self) -> dict[str, Any]:
        """Return what the numbers follow from, without seed and length: stream, version, parameters."""
        return {"stream": self.env_id, "version": VERSION, "parameters": self.to_json()}

    def spec(self, seed: int, steps: int) -> dict[str, Any]:
        """Return all that determines a dataset's numbers, in the form in which it is stored.

        Raises:
            ArgumentError: `seed` or `steps` is out of range.
        """
        steps = coerce("steps", steps, "int", {"minimum": 1})
        return {"kind": KIND, **self.definition(), "prng": PRNG, "seed": check_seed(seed), "steps": steps}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> EnvironmentStream:
        """Return the parameters that a spec holds; nothing is imported or made.

        Raises:
            ArgumentError: the spec is not one that `spec` writes; the message names the field.
            UnavailableError: it was collected by another version of the collector, or with other keys.
        """
        fields = {f.name for f in dataclasses.fields(cls)} - {"env_id"}
        parameters = spec.get("parameters")
        if spec.get("kind") != KIND:
            raise ArgumentError(f"kind must be {KIND!r}, got {spec.get('kind')!r}")
        if (spec.get("version"), spec.get("prng")) != (VERSION, PRNG):
            raise UnavailableError(
                f"this release makes version {VERSION} of environments with {PRNG}, got version "
                f"{spec.get('version')!r} with {spec.get('prng')!r}: take the release that made it"
            )
        if not isinstance(parameters, Mapping) or set(parameters) != fields:
            raise ArgumentError(f"parameters must be {sorted(fields)}, got {parameters!r}")
        made = cls(_matching("stream", spec.get("stream"), _ID), **parameters)
        if made.to_json() != dict(parameters):
            raise ArgumentError(f"parameters must be written as {made.to_json()!r}, got {dict(parameters)!r}")
        return made


def _matching(name: str, value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{name} must match {pattern.pattern}, got {value!r}")
    return value


def _one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    return value


def _scalar(name: str, value: Any) -> Any:
    """Return a JSON scalar, in the one form in which it is stored."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) <= MAX_EXACT_INT:
        return value
    if isinstance(value, float) and math.isfinite(value):
        # Canonical JSON writes 10.0 as 10: the environment gets the same number from the caller and from the spec.
        return int(value) if value.is_integer() and abs(value) <= MAX_EXACT_INT else value
    raise ArgumentError(
        f"env_args.{name} must be a text, a finite number, true, false or null, got {value!r}; "
        "register an environment of your own for anything else"
    )


def _wrappers(names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ArgumentError(f"wrappers must be a list of names, got {names!r}")
    return tuple(_matching("wrappers", name, _NAME) for name in names)


def _policy_text(text: Any) -> str:
    if not isinstance(text, str):
        raise ArgumentError(f"policy must be a text or a function, got {text!r}")
    return _matching("policy", text, _CUSTOM) if text.startswith("custom:") else str(parse_policy(text))


def _name_of(policy: Callable[[Any], Any]) -> str:
    """Return what a spec can say of a function: where its author finds it."""
    named = policy if hasattr(policy, "__qualname__") else type(policy)
    return f"custom:{named.__module__}.{named.__qualname__}"[:200]
