"""Steps an environment with a policy and keeps what it gives.

A reset makes no row: it gives the s of the next one. Episode e is reset with `seed + e`. The loop does as little as it
can a step; a policy whose actions don't depend on what is seen is asked for a whole block's at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from alberta_data.blocks import Block
from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.making import check_environment
from alberta_data.environments.policies import Policy, make_policy
from alberta_data.environments.spaces import PUBLISHED, Layout, layout_of
from alberta_data.errors import AlbertaDataError, UnavailableError
from alberta_data.keys import check_seed


class Collected(NamedTuple):
    """A block, and what else its steps left.

    Attributes:
        block: the rows of its steps.
        final_observations: `(episodes that ended in the block, width)`; behind the last block of a collection also the
            row of the episode that its end cuts off.
        state: what is needed to go on behind the block, path → array.
    """

    block: Block
    final_observations: np.ndarray
    state: dict[str, np.ndarray]


class Collector:
    """Steps an environment and keeps what it gives.

    Args:
        env: the environment.
        policy: a text, a function, or None for `random`.
        seed: of the environment's resets, its action space, and the policy.
        flatten: `published` or `one-hot`.
        action_scale: see `RandomPolicy`.

    Attributes:
        step: steps taken.
        episode: episodes ended.
        episode_step: steps taken in the running episode.
        observation: the layout of observations.
        action: the layout of actions.

    Raises:
        ArgumentError: a space can't be laid out, or has no such policy; nothing has been stepped then.
    """

    def __init__(
        self,
        env: Any,
        policy: str | Policy | None = None,
        seed: int = 0,
        flatten: str = PUBLISHED,
        action_scale: float | None = None,
    ):
        self.env, self.seed, self.flatten = check_environment(env), check_seed(seed), flatten
        self.observation: Layout = layout_of(env.observation_space, flatten, "observation")
        self.codec = ActionCodec(env.action_space)
        self.policy = make_policy(policy, env.action_space, seed, action_scale)
        self.action: Layout = self.codec.layout(flatten)
        self.step = self.episode = self.episode_step = 0
        self._seen: Any = None  # what the environment gave last; None where the next step begins an episode
        env.action_space.seed(seed)

    @property
    def following(self) -> np.ndarray | None:
        """The s' of the last step, `(width,)`, while its episode goes on; None where the next step begins one."""
        return None if self._seen is None else self._row(self._seen)

    def _row(self, value: Any) -> np.ndarray:
        row = np.empty(self.observation.shape, self.observation.dtype)
        row[...] = self.observation.convert(value)
        return row.reshape(-1)

    def collect(self, n: int, actions: np.ndarray | None = None) -> Collected:
        """Return the next `n` steps.

        Args:
            n: how many.
            actions: stored rows `(n, A)` to take instead of the policy's actions, which then is not asked.

        Raises:
            UnavailableError: the environment or the policy failed.
        """
        try:
            return self._collect(n, actions)
        except AlbertaDataError:
            raise
        except Exception as err:
            said = " ".join(str(err).split())[:200]
            raise UnavailableError(
                f"the environment or its policy failed in the steps from {self.step}: {type(err).__name__}: {said}"
            ) from err

    def _collect(self, n: int, stored: np.ndarray | None) -> Collected:
        observations = np.empty((n, *self.observation.shape), self.observation.dtype)
        actions = np.empty((n, *self.action.shape), self.action.dtype)
        rewards = np.empty(n, np.float64)
        terminated, truncated, starts = (np.zeros(n, bool) for _ in range(3))
        finals = [np.empty((0, self.observation.width), self.observation.dtype)]
        planned = self._plan(n, actions, stored)
        convert, take_step, seen, into = self.observation.convert, self.env.step, self._seen, self.episode_step
        for i in range(n):
            if seen is None:
                seen, _ = self.env.reset(seed=self.seed + self.episode)
                starts[i], into = True, 0
            observations[i] = convert(seen)
            action = planned[i] if planned else self._ask(observations[i], actions, i)
            seen, rewards[i], ended, cut, _ = take_step(action)
            into += 1
            if ended or cut:
                terminated[i], truncated[i] = ended, cut
                finals.append(self._row(seen)[None])
                self.episode, into, seen = self.episode + 1, 0, None
        self._seen, self.episode_step = seen, into
        rows = {
            "observations": observations.reshape(n, -1),
            "actions": actions.reshape(n, -1),
            "rewards": rewards,
            "terminated": terminated,
            "truncated": truncated,
            "episode_start": starts,
        }
        block = Block(self.step, rows)
        self.step += n
        return Collected(block, np.concatenate(finals), self.state())

    def _ask(self, observation: np.ndarray, actions: np.ndarray, i: int) -> Any:
        """Return the policy's action for a stored observation, and put it into row `i`."""
        action = self.codec.coerce(self.policy(np.array(observation, np.float32).reshape(-1)))
        actions[i] = self.action.convert(action)
        return action

    def _plan(self, n: int, rows: np.ndarray, stored: np.ndarray | None) -> list[Any] | None:
        """Return the next `n` actions where they are known ahead, and put them into their rows."""
        if stored is not None:
            rows[...] = stored.reshape(rows.shape)
            return [self.codec.from_row(row, self.flatten) for row in stored]
        if not hasattr(self.policy, "take"):
            return None
        planned = self.policy.take(n)
        if self.flatten == PUBLISHED:
            rows[...] = planned
        else:
            for i, action in enumerate(planned):
                rows[i] = self.action.convert(action)
        return self.codec.many_for_environment(planned)

    def state(self) -> dict[str, np.ndarray]:
        """Return where the collection stands, path → array; with it and the stored rows it can go on (`resuming`)."""
        place = {"step": self.step, "episode": self.episode, "episode_step": self.episode_step}
        inner = self.policy.state() if hasattr(self.policy, "state") else {}
        return {
            **{name: np.array(value, np.int64) for name, value in place.items()},
            **{f"policy/{name}": value for name, value in inner.items()},
        }
