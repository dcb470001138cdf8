"""Going on where a collection stopped.

An environment can't be stored. But every episode's reset is seeded, so the stored actions of the running episode,
taken again from its reset, lead to where it stood. What comes out is compared with what is stored, bit for bit; at
least one whole episode before the running one is played again too, so that an environment which remembers something
beyond a reset (a normalising wrapper, say) is found out. If it differs, the collection has to start over, and the
error says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from alberta_data.environments.collection import Collection
from alberta_data.environments.collector import Collector
from alberta_data.errors import ArgumentError, UnavailableError

StoredRows = Callable[[str, int, int], np.ndarray]
"""`array[start:stop]` by name, as stored."""

_LOOK_BACK = 1000
_COMPARED = ("observations", "rewards", "terminated", "truncated", "episode_start", "final_observations")


class CannotResumeError(UnavailableError):
    """The environment can't be brought to where the collection stopped; it has to start over."""


def resumed(collection: Collection, state: Mapping[str, np.ndarray], stored: StoredRows) -> Collector:
    """Return a collector that stands where `state` was taken; hand it to `collection.blocks`.

    Args:
        collection: the same parameters and seed.
        state: of the last block that is safely stored.
        stored: the rows up to that block, and `final_observations` of the episodes that ended in it.

    Raises:
        CannotResumeError: the policy is a function, the environment says that it is not deterministic, or the stored
            actions, taken again, give something else than what is stored.
    """
    collector = collection.collector()
    step, episode, into = (int(state[name]) for name in ("step", "episode", "episode_step"))
    if step == 0:
        return collector
    if not hasattr(collector.policy, "restore"):
        raise CannotResumeError(_message(step, "its policy is a function, whose state is not stored"))
    if getattr(collector.env.spec, "nondeterministic", False):
        raise CannotResumeError(_message(step, "the environment says that it is not deterministic"))
    collector.step, collector.episode = _begin(step, episode, into, stored)
    while collector.step < step:
        _replay(collector, min(collection.block_steps(), step - collector.step), step, stored)
    if (collector.episode, collector.episode_step) != (episode, into):
        raise CannotResumeError(_message(step, "the same actions give other episodes than those stored"))
    inner = {name.removeprefix("policy/"): value for name, value in state.items() if name.startswith("policy/")}
    collector.policy.restore(inner)
    return collector


def _begin(step: int, episode: int, into: int, stored: StoredRows) -> tuple[int, int]:
    """Return the step and the episode to play again from: whole episodes, about a thousand steps of them."""
    running = step - into
    low = max(0, running - _LOOK_BACK)
    starts = low + np.flatnonzero(stored("episode_start", low, running))
    while not len(starts) and low:
        low = max(0, low - _LOOK_BACK)
        starts = low + np.flatnonzero(stored("episode_start", low, running))
    if not len(starts):
        return running, episode
    return int(starts[0]), episode - len(starts)


def _replay(collector: Collector, n: int, step: int, stored: StoredRows) -> None:
    """Take `n` stored actions and compare what the environment gives with what is stored."""
    begin, first = collector.step, collector.episode
    try:
        again = collector.collect(n, actions=stored("actions", begin, begin + n))
    except (UnavailableError, ArgumentError) as err:
        raise CannotResumeError(_message(step, str(err))) from err
    rows = {**again.block.arrays, "final_observations": again.final_observations}
    for name in _COMPARED:
        start, stop = (first, collector.episode) if name == "final_observations" else (begin, begin + n)
        if rows[name].tobytes() != stored(name, start, stop).tobytes():
            raise CannotResumeError(_message(step, f"the same actions give other {name} than those stored"))


def _message(step: int, why: str) -> str:
    return f"the collection can't go on at step {step}, it has to start over: {why}"
