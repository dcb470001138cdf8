"""Policies: random, constant, epsilon-greedy, and what a person hands in.

A policy is called with an observation as a float32 vector and returns an action. Ours can also be asked for the next
`n` actions at once (`take`), because they don't depend on what is observed; their numbers are drawn a block at a time
and are bit for bit those of one call after another: `rng = key(seed)`; each call `rng, k = split(rng, 2)` and draws
from `k` (`ahead.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from alberta_data import host_keys
from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.ahead import CALLS_AHEAD, Ahead
from alberta_data.environments.policy_text import check_epsilon, parse_policy
from alberta_data.errors import ArgumentError, UnavailableError

Policy = Callable[[np.ndarray], Any]
State = dict[str, np.ndarray]

_AHEAD_NUMBERS = 2**20  # drawn at once; that many calls are fewer where one action is large


class RandomPolicy:
    """Uniform actions, in the published order of draws.

    `Discrete` → `randint(k, (), 0, n)` plus its start; `Box` → `uniform(k, shape, low, high)`; `MultiDiscrete` →
    component i is `randint(fold_in(k, i), (), 0, nvec[i])` plus its start.

    Args:
        space: the action space.
        seed: 0 … 4294967295.
        action_scale: stands in for an infinite bound of a Box: `-action_scale` below, `action_scale` above.

    Raises:
        ArgumentError: the space has no random policy; the message begins `Unsupported action space: `.
    """

    def __init__(self, space: spaces.Space, seed: int = 0, action_scale: float | None = None):
        self._codec = ActionCodec(space)
        size = int(np.prod(space.shape or (), dtype=np.int64))
        calls = min(CALLS_AHEAD, max(1, _AHEAD_NUMBERS // max(1, size)))
        self._ahead = Ahead(host_keys.key(seed), _drawing(space, action_scale), calls)

    def __call__(self, observation: Any = None) -> Any:
        """Return the next action; the observation is not looked at."""
        return self._codec.for_environment(self._ahead.take(1)[0])

    def take(self, n: int) -> np.ndarray:
        """Return the next `n` actions, `(n, ...)`."""
        return self._ahead.take(n)

    def state(self) -> State:
        """Return what `restore` needs to go on from here."""
        return {"key": self._ahead.words}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `state()` was called."""
        self._ahead.restore(state["key"])


def _drawing(space: spaces.Space, action_scale: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from keys `(n, 2)` to actions `(n, ...)` of a space."""
    if isinstance(space, spaces.Discrete) and space.n < 2**31:
        n, start, dtype = int(space.n), int(space.start), space.dtype
        return lambda keys: (host_keys.randint(keys, (), 0, n) + np.int64(start)).astype(dtype)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.size and space.nvec.max() < 2**31:
        return lambda keys: _draw_components(keys, space)
    if isinstance(space, spaces.Box):
        low, high = _bounds(space, action_scale)
        shape, dtype = space.shape, ActionCodec(space).dtype
        return lambda keys: host_keys.uniform(keys, shape, low, high).astype(dtype)
    raise ArgumentError(f"Unsupported action space: {space} has no random policy; give a policy")


def _draw_components(keys: np.ndarray, space: spaces.MultiDiscrete) -> np.ndarray:
    columns = [
        host_keys.randint(host_keys.fold_in(keys, i), (), 0, int(n)) for i, n in enumerate(space.nvec.reshape(-1))
    ]
    values = np.stack(columns, axis=-1).reshape(len(keys), *space.nvec.shape)
    return (values + np.asarray(space.start, np.int64)).astype(space.dtype)


def _bounds(space: spaces.Box, action_scale: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds actions are drawn between, float32; an infinite one is `action_scale` away from 0."""
    low, high = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
    if action_scale is not None:
        scale = np.float32(action_scale)
        low, high = np.where(np.isinf(low), -scale, low), np.where(np.isinf(high), scale, high)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
    if not np.isfinite(span).all():
        raise ArgumentError(
            f"Unsupported action space: {space} is unbounded; give a policy, or action_scale to draw between "
            "-action_scale and action_scale"
        )
    if (span < 0).any():
        raise ArgumentError(f"action_scale must reach the finite bounds of {space}, got {action_scale!r}")
    return low, high


class ConstantPolicy:
    """The same action at every step.

    Args:
        space: the action space.
        action: the action, or its numbers in C order; one number stands for every component of a Box.

    Raises:
        ArgumentError: the action does not lie in the space.
    """

    def __init__(self, space: spaces.Space, action: Any):
        self._codec = ActionCodec(space)
        if isinstance(space, spaces.Box) and np.size(action) == 1:
            action = np.full(space.shape, np.reshape(action, ()), self._codec.dtype)
        self._action = np.asarray(self._codec.coerce(action))
        if not space.contains(self._codec.for_environment(self._action)):
            raise ArgumentError(f"policy's action must lie in {space}, got {action!r}")

    def __call__(self, observation: Any = None) -> Any:
        """Return the action; the observation is not looked at."""
        return self._codec.for_environment(self._action)

    def take(self, n: int) -> np.ndarray:
        """Return the next `n` actions, `(n, ...)`."""
        return np.repeat(self._action[None], n, axis=0)

    def state(self) -> State:
        """Return what `restore` needs to go on from here: nothing."""
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `state()` was called."""


class EpsilonGreedyPolicy:
    """A base policy, with a random action in its place with probability epsilon.

    `rng = key(seed)`; each call `rng, k = split(rng, 2)`, random when `uniform(k) < epsilon`. The random policy inside
    has its own chain, which advances only when it is chosen.

    Args:
        base: the policy otherwise.
        random: the random policy.
        epsilon: 0 … 1.
        seed: 0 … 4294967295.
    """

    def __init__(self, base: Policy, random: RandomPolicy, epsilon: float = 0.1, seed: int = 0):
        threshold = np.float32(check_epsilon(epsilon))
        self._base, self._random = base, random
        self._coins = Ahead(host_keys.key(seed), lambda keys: host_keys.uniform(keys) < threshold)
        # The next actions are known ahead only where the base policy's are.
        if hasattr(base, "take"):
            self.take = self._take
        if hasattr(base, "state"):
            self.state, self.restore = self._state, self._restore

    def __call__(self, observation: Any = None) -> Any:
        """Return the next action."""
        return self._random() if self._coins.take(1)[0] else self._base(observation)

    def _take(self, n: int) -> np.ndarray:
        chosen = self._coins.take(n)
        among = int(chosen.sum())
        random, base = self._random.take(among), self._base.take(n - among)  # type: ignore[attr-defined]
        actions = np.empty((n, *random.shape[1:]), random.dtype)
        actions[chosen], actions[~chosen] = random, base
        return actions

    def _state(self) -> State:
        inner = {"random": self._random.state(), "base": self._base.state()}  # type: ignore[attr-defined]
        below = {f"{name}/{key}": value for name, state in inner.items() for key, value in state.items()}
        return {"key": self._coins.words, **below}

    def _restore(self, state: Mapping[str, np.ndarray]) -> None:
        self._coins.restore(state["key"])
        self._random.restore({"key": state["random/key"]})
        self._base.restore({k.removeprefix("base/"): v for k, v in state.items()})  # type: ignore[attr-defined]


def make_policy(
    policy: str | Policy | None, space: spaces.Space, seed: int = 0, action_scale: float | None = None
) -> Policy:
    """Return the policy a text names (`random`, `constant:A`, `epsilon:E:A`; None is `random`), or the callable given.

    Raises:
        ArgumentError: the text names no policy, or none for this action space.
        UnavailableError: the text records a callable that only its author has.
    """
    if callable(policy):
        return policy
    if policy is not None and not isinstance(policy, str):
        raise ArgumentError(f"policy must be a function of an observation, a text or None, got {policy!r:.80}")
    if policy is not None and policy.startswith("custom:"):
        raise UnavailableError(
            f"policy {policy.removeprefix('custom:')!r} is a function of its author's, which the spec can't hold; "
            "collect with that function through the Python API"
        )
    text = parse_policy("random" if policy is None else policy)
    if text.action is None:
        return RandomPolicy(space, seed, action_scale)
    constant = ConstantPolicy(space, text.action)
    if text.epsilon is None:
        return constant
    return EpsilonGreedyPolicy(constant, RandomPolicy(space, (seed + 1) % 2**32, action_scale), text.epsilon, seed)


def make_random_policy(env: Any, seed: int = 0) -> RandomPolicy:
    """Return a policy that draws uniform actions of `env`, as published: the same seed gives the same actions."""
    return RandomPolicy(env.action_space, seed)


def make_epsilon_greedy_policy(base_policy: Policy, env: Any, epsilon: float = 0.1, seed: int = 0) -> Policy:
    """Return `base_policy` with a random action in its place with probability `epsilon`."""
    # 2^32 has no key of its own; as 32 bits it is 0.
    random = make_random_policy(env, (seed + 1) % 2**32)
    return EpsilonGreedyPolicy(base_policy, random, epsilon, seed)
