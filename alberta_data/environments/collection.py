"""An environment and a policy → blocks of what the environment gave.

Stored per step: `observations` (s, flattened, in their own dtype), `actions`, `rewards`, `terminated`, `truncated`,
`episode_start`; per episode one row of `final_observations` (the true last s'), the episode that the end cuts off
included. A reset makes no row: it gives the s of the next one. Episode e is reset with `seed + e`.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from alberta_data.blocks import Block
from alberta_data.environments.actions import ActionCodec
from alberta_data.environments.features import next_rows, target_rows
from alberta_data.environments.making import check_environment, make_environment
from alberta_data.environments.parameters import EnvironmentStream, PredictionMode
from alberta_data.environments.policies import Policy, make_policy
from alberta_data.environments.spaces import PUBLISHED, Layout, layout_of
from alberta_data.errors import AlbertaDataError, UnavailableError
from alberta_data.keys import check_seed

CHECKPOINT_STEPS = 2**17
_BLOCK_BYTES = 2**25


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


class ArrayForm(NamedTuple):
    """The form of a stored array: dtype, columns (None where it has one number a step and no second axis)."""

    dtype: np.dtype
    columns: tuple[str, ...] | None


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


class Collection:
    """Parameters and a seed, opened: the environment is made and its spaces are known, no step is taken.

    Args:
        parameters: what to collect.
        seed: 0 … 4294967295.
        allow_import: modules that may be imported for the environment's id.

    Raises:
        ArgumentError: the environment, a space or the policy is refused.
        UnavailableError: something is not installed, or the policy is only recorded.
    """

    def __init__(self, parameters: EnvironmentStream, seed: int = 0, allow_import: Names[str] = ()):
        self.parameters, self.seed, self._allowed = parameters, check_seed(seed), tuple(allow_import)
        opened = self._make()
        self._opened: Collector | None = opened
        self._observation, self._action = opened.observation, opened.action
        self.initial_state: dict[str, np.ndarray] = opened.state()
        """The state before step 0."""

    def _make(self) -> Collector:
        p = self.parameters
        env = make_environment(p, self._allowed)
        return Collector(env, p.policy, self.seed, p.flatten, p.action_scale)

    def collector(self) -> Collector:
        """Return a collector that stands before the first step, with an environment of its own."""
        opened, self._opened = self._opened, None
        return opened or self._make()

    @property
    def feature_dim(self) -> int:
        """Number of features of a step, by the parameters' defaults."""
        return self._observation.width + self.parameters.include_action_in_features * self._action.width

    @property
    def target_dim(self) -> int:
        """Number of targets of a step, in the parameters' mode."""
        return self._observation.width if self.parameters.mode == PredictionMode.NEXT_STATE else 1

    @property
    def arrays(self) -> dict[str, ArrayForm]:
        """The stored arrays, name → form; all are indexed by step but `final_observations`."""
        observation = ArrayForm(self._observation.dtype, self._observation.columns)
        flag = ArrayForm(np.dtype(bool), None)
        forms = {
            "observations": observation,
            "actions": ArrayForm(self._action.dtype, self._action.columns),
            "rewards": ArrayForm(np.dtype(np.float64), None),
            "terminated": flag,
            "truncated": flag,
            "episode_start": flag,
        }
        if self.target_dim == 1:
            mode = self.parameters.mode
            name = f"next_{self._observation.columns[0]}" if mode == PredictionMode.NEXT_STATE else str(mode)
            forms["targets"] = ArrayForm(np.dtype(np.float32), (name[:64],))
        return {**forms, "final_observations": observation}

    @property
    def row_bytes(self) -> int:
        """How many bytes a step takes in memory."""
        forms = self.arrays
        del forms["final_observations"]
        return sum(form.dtype.itemsize * len(form.columns or "1") for form in forms.values())

    def block_steps(self, wanted: int = 2**14) -> int:
        """Return how many steps a block has: `wanted`, or fewer where rows are wide (images)."""
        return max(1, min(wanted, _BLOCK_BYTES // self.row_bytes))

    def blocks(self, steps: int, block_steps: int = 2**14, collector: Collector | None = None) -> Iterator[Collected]:
        """Yield the steps from where the collector stands up to `steps`; blocks end at every multiple of 2^17.

        Args:
            steps: length of the collection.
            block_steps: steps of a block, an upper limit; the rows don't depend on it.
            collector: one that stands further on (`resuming.resumed`); default one before step 0.

        Raises:
            UnavailableError: the environment or the policy failed.
        """
        collector = collector or self.collector()
        size = self.block_steps(block_steps)
        try:
            while collector.step < steps:
                boundary = (collector.step // CHECKPOINT_STEPS + 1) * CHECKPOINT_STEPS
                got = collector.collect(min(size, steps - collector.step, boundary - collector.step))
                yield self._finished(got, collector.following, last=collector.step == steps)
        finally:
            collector.env.close()

    def _finished(self, got: Collected, after: np.ndarray | None, last: bool) -> Collected:
        """Return a block with its targets, and with the row of the episode that the end cuts off."""
        rows, finals = dict(got.block.arrays), got.final_observations
        if "targets" in self.arrays:
            following = None
            if self.parameters.mode == PredictionMode.NEXT_STATE:
                following = next_rows(got.block, rows["observations"][-1] if after is None else after, finals)
            rows["targets"] = target_rows(self.parameters.mode, rows["rewards"], following)
        if last and after is not None:
            finals = np.concatenate([finals, after[None]])
        return Collected(Block(got.block.start, rows), finals, got.state)


def collect_blocks(
    parameters: EnvironmentStream, seed: int, steps: int, block_steps: int = 2**14
) -> Iterator[Collected]:
    """Yield `steps` steps of an environment, block by block; memory does not grow with them."""
    yield from Collection(parameters, seed).blocks(steps, block_steps)
