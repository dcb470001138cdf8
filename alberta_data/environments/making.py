"""An environment from its parameters, and what a stranger's parameters may not do.

gymnasium imports the module of an id `module:Name`, and environments may open files that their arguments name. So
nothing is made from a spec before `check_stranger`, and an id is only made when gymnasium has registered it.
"""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import gymnasium

from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.errors import ArgumentError, RefusedError, UnavailableError

# They make an environment of another library from an id among their arguments, importing what it names.
_IMPORTING_IDS = ("GymV21Environment", "GymV26Environment")
_FORMALITIES = (
    gymnasium.wrappers.TimeLimit,
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
)
_OTHERS_ARGUMENTS = ("id", "entry_point", "vectorization_mode")


def call_text(parameters: EnvironmentStream) -> str:
    """Return the call that makes the environment, as a person would write it."""
    arguments = [repr(parameters.env_id), *(f"{name}={value!r}" for name, value in parameters.env_args.items())]
    text = f"gymnasium.make({', '.join(arguments)})"
    for wrapper in parameters.wrappers:
        text = f"gymnasium.wrappers.{wrapper}({text})"
    return text


def check_stranger(parameters: EnvironmentStream, allow_import: Collection[str] = ()) -> None:
    """Refuse to make an environment that a dataset or recipe of someone else's names, unless it is harmless.

    Args:
        parameters: read from a spec.
        allow_import: modules that the person at the command line named.

    Raises:
        RefusedError: it would import a module nobody allowed, or hand on text that names a file or another id.
        UnavailableError: the spec does not hold the policy, or gymnasium has no such environment here.
    """
    if not isinstance(parameters.policy, str) or parameters.policy.startswith("custom:"):
        raise UnavailableError(
            f"reproducing needs a policy that the spec holds, got {parameters.to_json()['policy']!r}, a function of "
            "its author's: collect with that function through the Python API and compare with diff"
        )
    module = _module_of(parameters.env_id)
    if module is not None and module not in allow_import:
        raise RefusedError(
            f"{parameters.env_id!r} would import the module {module!r}; if you trust it, pass --allow-import {module}"
        )
    name = parameters.env_id.rpartition("/")[2]
    if name.startswith(_IMPORTING_IDS) and "gym" not in allow_import:
        raise RefusedError(f"{parameters.env_id!r} makes whatever gym names; if you trust it, pass --allow-import gym")
    if module is None and not allow_import and parameters.env_id not in gymnasium.registry:
        raise UnavailableError(
            f"reproducing needs an environment that gymnasium has registered, got {parameters.env_id!r}; if you trust "
            "the package that has it, pass its module with --allow-import NAME"
        )
    for key, value in parameters.env_args.items():
        if isinstance(value, str) and any(character in value for character in ":/\\"):
            raise RefusedError(
                f"env_args.{key} must not name a file or a module, got {value!r}; if you trust it, collect it with "
                "generate environment"
            )


def make_environment(parameters: EnvironmentStream, allow_import: Collection[str] = ()) -> gymnasium.Env:
    """Return the environment, wrapped.

    Args:
        parameters: what to make.
        allow_import: modules to import first; an id `module:Name` needs its module here.

    Raises:
        ArgumentError: no such environment, argument or wrapper.
        RefusedError: an id `module:Name` whose module is not allowed.
        UnavailableError: something the environment needs is not installed.
    """
    for name in allow_import:
        _import(name)
    _check_registered(parameters.env_id, allow_import)
    taken = [name for name in parameters.env_args if name in _OTHERS_ARGUMENTS]
    if taken:
        raise ArgumentError(f"env_args must be arguments of the environment, got {taken[0]!r}")
    with _told(call_text(parameters)):
        env = gymnasium.make(parameters.env_id, **parameters.env_args)
        for wrapper in parameters.wrappers:
            env = _wrapper(wrapper)(env)
    return check_environment(env)


def made_by_id(env_id: str, arguments: Mapping[str, Any]) -> gymnasium.Env:
    """Return `gymnasium.make(env_id, **arguments)`, for code that trusts the id.

    Raises:
        ArgumentError: no such environment or argument.
        UnavailableError: something the environment needs is not installed.
    """
    with _told(f"gymnasium.make({env_id!r}, …)"):
        return gymnasium.make(env_id, **arguments)


@contextmanager
def _told(call: str) -> Iterator[None]:
    """Turn what an environment raises while it is made into errors of ours."""
    try:
        yield
    except (gymnasium.error.DependencyNotInstalled, ImportError) as err:
        raise UnavailableError(f"{call} needs what is not installed: {_line(err)}") from err
    except ArgumentError:
        raise
    except Exception as err:
        raise ArgumentError(f"{call} must work, got {type(err).__name__}: {_line(err)}") from err


def check_environment(env: Any) -> gymnasium.Env:
    """Return an environment whose resets are ours to ask for.

    Raises:
        ArgumentError: it is a vector environment, none at all, or resets itself.
    """
    if not isinstance(env, gymnasium.Env):
        raise ArgumentError(f"env must be a gymnasium.Env (one, not a vector of them), got {type(env).__name__}")
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.Autoreset):
            raise ArgumentError("env must not reset itself, got Autoreset among its wrappers: rows would be made by it")
        layer = layer.env
    return env


def bare_step(env: gymnasium.Env) -> tuple[Callable[[Any], Any], float]:
    """Return the `step` below the layers that `gymnasium.make` puts on, and the time limit that was among them.

    `OrderEnforcing` and `PassiveEnvChecker` only look on, `TimeLimit` only counts; together they take a twentieth of a
    quick environment's time. Whoever steps below them resets before the first step, counts, and truncates.
    """
    limit = math.inf
    while type(env) in _FORMALITIES:
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env  # type: ignore[attr-defined]
    return env.step, limit


def versions(parameters: EnvironmentStream) -> dict[str, str]:
    """Return the versions of gymnasium and of the package that has the environment, by name of distribution."""
    spec = gymnasium.registry.get(parameters.env_id.rpartition(":")[2])
    entry = getattr(spec, "entry_point", None)
    module = entry if isinstance(entry, str) else getattr(entry, "__module__", "")
    owners = metadata.packages_distributions().get(module.partition(".")[0].partition(":")[0], [])
    return {name: metadata.version(name) for name in sorted({"gymnasium", *owners})}


def _module_of(env_id: str) -> str | None:
    module, colon, _ = env_id.rpartition(":")
    return module if colon else None


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError as err:
        raise UnavailableError(f"the module {name!r} can't be imported: {_line(err)}") from err


def _check_registered(env_id: str, allow_import: Collection[str]) -> None:
    module = _module_of(env_id)
    if module is not None and module not in allow_import:
        raise RefusedError(f"{env_id!r} would import the module {module!r}; allow it by name")
    name = env_id.rpartition(":")[2]
    if name not in gymnasium.registry:
        near = difflib.get_close_matches(name, list(gymnasium.registry), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "import the package that registers it"
        raise ArgumentError(f"env_id must be one that gymnasium has registered, got {env_id!r}; {hint}")


def _wrapper(name: str) -> Any:
    known = gymnasium.wrappers.__all__
    wrapper = getattr(gymnasium.wrappers, name, None) if name in known else None
    if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
        near = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.3)) or "one of gymnasium.wrappers"
        raise ArgumentError(f"wrapper must be one that gymnasium has, got {name!r}; did you mean {near}?")
    return wrapper


def _line(err: BaseException) -> str:
    return " ".join(str(err).split())[:300]
