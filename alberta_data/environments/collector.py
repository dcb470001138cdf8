"""Steps an environment with a policy and keeps what it gives.

A reset makes no row: it gives the s of the next one. Episode e is reset with `seed + e`. The loop does as little as it
can a step; a policy whose actions don't depend on what is seen is asked for a whole block's at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from alberta_data.blocks import Block
from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.making import bare_step, check_environment
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
        own: nobody else looks at the environment; from its second episode on it is stepped below the layers that
            `gymnasium.make` puts on (`bare_step`), which checked the first.

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
        own: bool = False,
    ):
        self.env, self.seed, self.flatten = check_environment(env), check_seed(seed), flatten
        self.observation: Layout = layout_of(env.observation_space, flatten, "observation")
        self.codec = ActionCodec(env.action_space)
        self.policy = make_policy(policy, env.action_space, seed, action_scale)
        self.action: Layout = self.codec.layout(flatten)
        self.step = self.episode = self.episode_step = 0
        self._seen: Any = None  # what the environment gave last; None where the next step begins an episode
        self._bare = bare_step(env) if own else (env.step, math.inf)
        env.action_space.seed(seed)

    @property
    def following(self) -> np.ndarray | None:
        """The s' of the last step, `(width,)`, while its episode goes on; None where the next step begins one."""
        return None if self._seen is None else self._row(self._seen)

    def _row(self, value: Any) -> np.ndarray:
        return np.array(self.observation.convert(value), self.observation.dtype).reshape(-1)

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
        seen_rows: list[bytes] = []
        rewards: list[Any] = []
        actions = np.empty((n, *self.action.shape), self.action.dtype)
        terminated, truncated, starts = (np.zeros(n, bool) for _ in range(3))
        finals = [np.empty((0, self.observation.width), self.observation.dtype)]
        planned = self._plan(n, actions, stored)
        # Rows are gathered as bytes: a copy (the environment may use its array again) at half the price of assigning.
        convert, pack = self.observation.convert, self.observation.pack
        keep, keep_reward = seen_rows.append, rewards.append
        seen, into, (bare, limit) = self._seen, self.episode_step, self._bare
        step = bare if self.episode else self.env.step
        for i in range(n):
            if seen is None:
                seen, _ = self.env.reset(seed=self.seed + self.episode)
                starts[i], into = True, 0
                step = bare if self.episode else self.env.step
            keep(pack(convert(seen)))
            action = planned[i] if planned else self._ask(seen, actions, i)
            seen, reward, ended, cut, _ = step(action)
            keep_reward(reward)
            into += 1
            if ended or cut or into >= limit:
                terminated[i], truncated[i] = ended, cut or into >= limit
                finals.append(self._row(seen)[None])
                self.episode, into, seen = self.episode + 1, 0, None
        self._seen, self.episode_step = seen, into
        observations = np.frombuffer(bytearray().join(seen_rows), self.observation.dtype)
        rows = {
            "observations": observations.reshape(n, -1),
            "actions": actions.reshape(n, -1),
            "rewards": np.array(rewards, np.float64).reshape(n),
            "terminated": terminated,
            "truncated": truncated,
            "episode_start": starts,
        }
        block = Block(self.step, rows)
        self.step += n
        return Collected(block, np.concatenate(finals), self.state())

    def _ask(self, seen: Any, actions: np.ndarray, i: int) -> Any:
        """Return the policy's action for what was seen, and put it into row `i`."""
        action = self.codec.coerce(self.policy(self.observation.vector(seen)))
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
