"""The public face of environments: two iterators of steps, and trajectories as arrays.

    stream = make_gymnasium_stream("CartPole-v1", mode=PredictionMode.REWARD, seed=0)
    for step in stream: …                                     # step.observation, step.target: float32, NumPy
    observations, targets = collect_trajectory(env, None, 10_000)

Names, defaults, seeds and layout are the published ones; so are the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from alberta_data.blocks import Block, TimeStep
from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.collector import Collector
from alberta_data.environments.features import learning_block, next_rows
from alberta_data.environments.making import check_environment, made_by_id
from alberta_data.environments.parameters import PredictionMode
from alberta_data.environments.policies import (
    Policy,
    make_epsilon_greedy_policy,
    make_policy,
    make_random_policy,
)
from alberta_data.environments.spaces import layout_of
from alberta_data.errors import ArgumentError
from alberta_data.keys import check_seed
from alberta_data.parameters import coerce

__all__ = [
    "GymnasiumStream",
    "PredictionMode",
    "TDStream",
    "collect_trajectory",
    "make_epsilon_greedy_policy",
    "make_gymnasium_stream",
    "make_random_policy",
]

Value = Callable[[np.ndarray], Any]


class _Transition(NamedTuple):
    """One step: s, a and s' as float32 vectors, r, and whether the episode terminated."""

    observation: np.ndarray
    action: np.ndarray
    reward: float
    following: np.ndarray
    terminated: bool


class _Walk:
    """An environment stepped one transition at a time; the same seeds and order as `Collector`."""

    def __init__(self, env: Any, policy: Policy | None, seed: int):
        self._env, self._seed = check_environment(env), check_seed(seed)
        self._layout = layout_of(env.observation_space, name="observation")
        self._codec = ActionCodec(env.action_space)
        self._policy = make_policy(policy, env.action_space, seed)
        self._action = self._codec.layout()
        env.action_space.seed(seed)
        self._seen: np.ndarray | None = None
        self.episode_count = self.step_count = 0

    def width(self, include_action: bool) -> int:
        """Number of features."""
        return self._layout.width + include_action * self._action.width

    @property
    def observation_width(self) -> int:
        """Number of values of an observation."""
        return self._layout.width

    def __next__(self) -> _Transition:
        if self._seen is None:
            first, _ = self._env.reset(seed=self._seed + self.episode_count)
            self._seen = self._layout.vector(first)
        seen = self._seen
        # The policy may keep or change what it is given.
        action = self._codec.coerce(self._policy(seen.copy()))
        row = self._action.vector(action)
        following, reward, terminated, truncated, _ = self._env.step(action)
        after = self._layout.vector(following)
        self.step_count += 1
        ended = bool(terminated or truncated)
        self.episode_count += ended
        self._seen = None if ended else after
        return _Transition(seen, row, float(reward), after, bool(terminated))


def _check_value(value: Value | None) -> Value | None:
    if value is not None and not callable(value):
        raise ArgumentError(f"a value estimate must be a function of a feature vector, got {value!r:.80}")
    return value


def _discounted(transition: _Transition, gamma: float, value: Value | None, features: np.ndarray) -> np.ndarray:
    """Return `r + γ·V(features)`, `(1,)` float32; just r when terminated, or without a V."""
    target = transition.reward
    if value is not None and not transition.terminated:
        worth = np.asarray(value(features))
        if worth.size != 1:
            raise ArgumentError(f"a value must be one number, got shape {worth.shape}")
        target += gamma * float(worth.reshape(())[()])
    return np.array([target], np.float32)


def _check_gamma(gamma: float) -> float:
    return coerce("gamma", gamma, "float", {"minimum": 0.0, "maximum": 1.0})


def _mode(mode: str) -> PredictionMode:
    try:
        return PredictionMode(mode)
    except ValueError:
        raise ArgumentError(f"mode must be one of {', '.join(PredictionMode)}, got {mode!r}") from None


def _features(observation: np.ndarray, action: np.ndarray, include_action: bool) -> np.ndarray:
    return np.concatenate([observation, action]) if include_action else observation.copy()


class GymnasiumStream:
    """An environment as a stream of steps: its own iterator of `TimeStep`, without end.

    Args:
        env: a Gymnasium environment; it is reset by the stream, episode e with `seed + e`.
        mode: what to predict.
        policy: a function from a float32 observation to an action; None is the random policy with `seed`.
        gamma: discount of `VALUE`.
        include_action_in_features: whether the action follows the observation.
        seed: 0 … 4294967295.

    Raises:
        ArgumentError (a ValueError): a space that can't be flattened (`Unsupported space type: …`), an action space
            without a random policy (`Unsupported action space: …`), gamma outside [0, 1].
    """

    def __init__(
        self,
        env: Any,
        mode: PredictionMode = PredictionMode.REWARD,
        policy: Policy | None = None,
        gamma: float = 0.99,
        include_action_in_features: bool = True,
        seed: int = 0,
    ):
        self._mode, self._gamma, self._include = _mode(mode), _check_gamma(gamma), bool(include_action_in_features)
        self._walk = _Walk(env, policy, seed)
        self._value: Value | None = None

    @property
    def feature_dim(self) -> int:
        """Number of features of an observation."""
        return self._walk.width(self._include)

    @property
    def target_dim(self) -> int:
        """Width of the observation for `NEXT_STATE`, else 1."""
        return self._walk.observation_width if self._mode == PredictionMode.NEXT_STATE else 1

    @property
    def episode_count(self) -> int:
        """How many episodes have ended."""
        return self._walk.episode_count

    @property
    def step_count(self) -> int:
        """How many steps have been taken."""
        return self._walk.step_count

    @property
    def mode(self) -> PredictionMode:
        """What is to be predicted."""
        return self._mode

    @property
    def gamma(self) -> float:
        """Discount of `VALUE`."""
        return self._gamma

    @property
    def include_action_in_features(self) -> bool:
        """Whether the action follows the observation in the features."""
        return self._include

    def set_value_estimator(self, estimator: Value | None) -> None:
        """Set V, a function of s' as a float32 vector, for the targets of `VALUE`; without one V is 0."""
        self._value = _check_value(estimator)

    def __iter__(self) -> Iterator[TimeStep]:
        """Return the stream itself."""
        return self

    def __next__(self) -> TimeStep:
        """Take one step; `observation` `(feature_dim,)`, `target` `(target_dim,)`, float32."""
        t = next(self._walk)
        if self._mode == PredictionMode.NEXT_STATE:
            target = t.following.copy()
        else:
            value = self._value if self._mode == PredictionMode.VALUE else None
            target = _discounted(t, self._gamma, value, t.following.copy())
        return TimeStep(_features(t.observation, t.action, self._include), target)


class TDStream:
    """An environment as a stream of TD(0) targets: `r + γ·V(s')`, and r when terminated.

    V is given by `update_value_function`, and is 0 before. Its argument is the feature vector the learner sees: s',
    followed by the action of this step when actions are features. A truncated step bootstraps.

    Args:
        env: a Gymnasium environment; it is reset by the stream, episode e with `seed + e`.
        policy: a function from a float32 observation to an action; None is the random policy with `seed`.
        gamma: discount.
        include_action_in_features: whether the action follows the observation.
        seed: 0 … 4294967295.

    Raises:
        ArgumentError (a ValueError): as `GymnasiumStream`.
    """

    def __init__(
        self,
        env: Any,
        policy: Policy | None = None,
        gamma: float = 0.99,
        include_action_in_features: bool = False,
        seed: int = 0,
    ):
        self._gamma, self._include = _check_gamma(gamma), bool(include_action_in_features)
        self._walk = _Walk(env, policy, seed)
        self._value: Value | None = None

    @property
    def feature_dim(self) -> int:
        """Number of features of an observation."""
        return self._walk.width(self._include)

    @property
    def episode_count(self) -> int:
        """How many episodes have ended."""
        return self._walk.episode_count

    @property
    def step_count(self) -> int:
        """How many steps have been taken."""
        return self._walk.step_count

    def update_value_function(self, value: Value) -> None:
        """Set V, from a feature vector to a number (a float, `()` or `(1,)`)."""
        self._value = _check_value(value)

    def __iter__(self) -> Iterator[TimeStep]:
        """Return the stream itself."""
        return self

    def __next__(self) -> TimeStep:
        """Take one step; `observation` `(feature_dim,)`, `target` `(1,)`, float32."""
        t = next(self._walk)
        following = _features(t.following, t.action, self._include)
        target = _discounted(t, self._gamma, self._value, following)
        return TimeStep(_features(t.observation, t.action, self._include), target)


def collect_trajectory(
    env: Any,
    policy: Policy | None,
    num_steps: int,
    mode: PredictionMode = PredictionMode.REWARD,
    include_action_in_features: bool = True,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Return `num_steps` steps as float32 JAX arrays: `(num_steps, feature_dim)` and `(num_steps, target_dim)`.

    The same rows as a `GymnasiumStream` gives; `VALUE` without a learner gives the reward.

    Args:
        env: a Gymnasium environment.
        policy: a function from a float32 observation to an action; None is the random policy with `seed`.
        num_steps: at least 1.
        mode: what to predict.
        include_action_in_features: whether the action follows the observation.
        seed: 0 … 4294967295.

    Raises:
        ArgumentError (a ValueError): as `GymnasiumStream`.
    """
    import jax.numpy as jnp

    mode, steps = _mode(mode), coerce("num_steps", num_steps, "int", {"minimum": 1})
    collector = Collector(env, policy, seed)
    got = collector.collect(steps)
    rows: dict[str, np.ndarray] = dict(got.block.arrays)
    if mode == PredictionMode.NEXT_STATE:
        after = collector.following
        # Behind an episode's end nothing follows; its row is among the final ones.
        after = rows["observations"][-1] if after is None else after
        rows["next_observations"] = next_rows(got.block, after, got.final_observations)
    block = learning_block(Block(0, rows), mode, bool(include_action_in_features))
    return jnp.asarray(block.observations), jnp.asarray(block.targets)


def make_gymnasium_stream(
    env_id: str,
    mode: PredictionMode = PredictionMode.REWARD,
    policy: Policy | None = None,
    gamma: float = 0.99,
    include_action_in_features: bool = True,
    seed: int = 0,
    **env_kwargs: Any,
) -> GymnasiumStream:
    """Return a `GymnasiumStream` of `gymnasium.make(env_id, **env_kwargs)`.

    Raises:
        ArgumentError: no such environment or argument.
        UnavailableError: something the environment needs is not installed.
    """
    env = made_by_id(env_id, env_kwargs)
    return GymnasiumStream(env, mode, policy, gamma, include_action_in_features, seed)
