"""Learners folded over blocks: a grid reads the data once, and it makes no difference where the blocks come from.

Learners of one kind and one target column go into groups of eight lanes; threads share the groups. No bit depends
on the grouping: a member's metrics and state are those of the learner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from alberta_data import xla
from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, NonFiniteError, UnavailableError
from alberta_data.learners import LinearLearner
from alberta_data.replay.groups import LANES, NOT_TRACKED, Group, Tracking
from alberta_data.replay.rows import rows_of

THREADS = min(xla.cores(), 16) + 1
"""Groups learned from at once: one more than there are processors, since each also waits; each needs memory."""


class Member(NamedTuple):
    """One learner of a grid and the target column that it predicts."""

    learner: LinearLearner
    column: int


class GroupMetrics(NamedTuple):
    """The metrics of one block for the members of one group.

    Attributes:
        members: their places in `Fold.members`.
        metrics: `(n, columns, len(members))` float32; `COLUMNS` of `alberta_data.learners.linear` names them.
    """

    members: list[int]
    metrics: np.ndarray


class Fold:
    """A grid of learners, fed block by block. Use it as a context: it owns threads.

    Args:
        learners: at least one.
        feature_dim: features of an observation.
        columns: target columns; K columns are K learners side by side, so there are `len(learners) · K` members,
            the columns of a learner following each other.
        gamma: learn values from transitions with this discount, 0 to 1; None for plain targets.
        states: one a member, to go on from; None to begin.
        tracking: what to record of step-sizes and normalisers; see `histories`.

    Raises:
        ArgumentError: no learner or column, a discount out of range.
        UnavailableError: this process was forked after jax had started.
    """

    def __init__(
        self,
        learners: Sequence[LinearLearner],
        feature_dim: int,
        *,
        columns: Sequence[int] = (0,),
        gamma: float | None = None,
        states: Sequence[Any] | None = None,
        tracking: Tracking = NOT_TRACKED,
    ):
        if not learners or not columns:
            raise ArgumentError("a grid must have at least one learner and one target column, got an empty one")
        check_gamma(gamma)
        check_can_compute()
        self.members = [Member(learner, column) for learner in learners for column in columns]
        self.feature_dim = feature_dim
        self.position: int | None = None
        self._td = gamma is not None
        with _cpu():
            given = [member.learner.init(feature_dim) for member in self.members] if states is None else list(states)
            if len(given) != len(self.members):
                raise ArgumentError(f"states must be one a member ({len(self.members)}), got {len(given)}")
            if states is not None:
                for member, state in zip(self.members, given, strict=True):
                    check_state(member.learner, state, feature_dim)
            self._groups = [
                Group(
                    places,
                    [self.members[place].learner for place in places],
                    [given[place] for place in places],
                    [self.members[place].column for place in places],
                    gamma,
                    tracking,
                )
                for places in _grouped(self.members)
            ]
        self._threads = ThreadPoolExecutor(THREADS) if len(self._groups) > 1 else None

    def __enter__(self) -> Fold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def advance(self, block: Block, then: Callable[[GroupMetrics], None] | None = None) -> list[GroupMetrics]:
        """Learn from a block and return every step's metrics, group by group; groups without a survivor are left out.

        Args:
            block: steps that follow those of the block before.
            then: called with the metrics of each group once they are there, in the thread that learned them; also of
                the block in which the last member is lost.

        Raises:
            ArgumentError: an array is missing or of another width; a block that does not follow.
            NonFiniteError: no member is left; its `step` is the last one's.
        """
        rows = rows_of(block, td=self._td)
        if self.position is not None and block.start != self.position:
            raise ArgumentError(f"blocks must follow each other: expected step {self.position}, got {block.start}")
        if rows.observations.shape[1] != self.feature_dim:
            raise ArgumentError(f"observations must have {self.feature_dim} features, got {rows.observations.shape[1]}")
        widest = max(member.column for member in self.members)
        if widest >= rows.targets.shape[1]:
            raise ArgumentError(f"target column {widest} is not there: targets have {rows.targets.shape[1]} columns")

        def run(group: Group) -> GroupMetrics:
            with _cpu():
                found = GroupMetrics(group.members, group.advance(rows))
            if then is not None:
                then(found)
            return found

        alive = [group for group in self._groups if not group.lost]
        found = list(map(run, alive) if self._threads is None else self._threads.map(run, alive))
        self.position = block.stop
        self._raise_if_all_lost()
        return found

    @property
    def groups(self) -> list[list[int]]:
        """The members' places, group by group."""
        return [list(group.members) for group in self._groups]

    @property
    def stopped(self) -> dict[int, int]:
        """Members that left the finite numbers → index of the first step after which they had."""
        return {member: step for group in self._groups for member, step in sorted(group.stopped.items())}

    def states(self) -> list[Any]:
        """Return the members' states as they stand, those of lost members included."""
        found = {
            place: state for group in self._groups for place, state in zip(group.members, group.states(), strict=True)
        }
        return [found[place] for place in range(len(self.members))]

    def histories(self, member: int) -> list[np.ndarray]:
        """Return what was recorded of a member, one array a quantity, the recordings first.

        In order, each where asked for: step-sizes `(recordings, D + 1)`, the bias last; likewise Autostep's
        normalisers; the normaliser's means and variances, `(recordings, D)`.
        """
        group = next(group for group in self._groups if member in group.members)
        lane = (group.members.index(member),) if group.width else ()
        return [table[(..., *lane)] for table in group.joined_histories()]

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on, as named arrays without pickles."""
        import jax

        arrays = {"position": np.array(-1 if self.position is None else self.position, np.int64)}
        for number, group in enumerate(self._groups):
            for place, leaf in enumerate(jax.tree.leaves(group.packed)):
                arrays[f"group{number}/{place}"] = np.asarray(leaf)
            for place, table in enumerate(group.joined_histories()):
                arrays[f"group{number}/history{place}"] = table
            arrays[f"group{number}/taken"] = np.array(group.taken, np.int64)
            arrays[f"group{number}/stopped"] = np.array([group.stopped.get(m, -1) for m in group.members], np.int64)
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint of the same grid.

        Raises:
            ArgumentError: the checkpoint is of another grid.
        """
        import jax

        for number, group in enumerate(self._groups):
            leaves, tree = jax.tree.flatten(group.packed)
            try:
                found = [arrays[f"group{number}/{place}"] for place in range(len(leaves))]
                steps = arrays[f"group{number}/stopped"]
                group.taken = int(arrays[f"group{number}/taken"])
            except KeyError as err:
                raise ArgumentError(f"the checkpoint must be of the same learners, but lacks {err}") from None
            if [(a.shape, a.dtype) for a in found] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
                raise ArgumentError("the checkpoint must be of the same learners, but its states have other shapes")
            group.packed = jax.tree.unflatten(tree, found)
            prefix = f"group{number}/history"
            kept = sorted(name for name in arrays if name.startswith(prefix))
            group.histories = [[np.asarray(arrays[name]) for name in kept]] if kept else []
            group.stopped = {member: int(at) for member, at in zip(group.members, steps, strict=True) if at >= 0}
        position = int(arrays["position"])
        self.position = None if position < 0 else position

    def _raise_if_all_lost(self) -> None:
        if not all(group.lost for group in self._groups):
            return
        member, step = max(self.stopped.items(), key=lambda item: item[1])
        raise NonFiniteError(lost_message(self.members[member].learner, step, len(self.members)), step=step)


def lost_message(learner: Any, step: int, members: int = 1) -> str:
    """Return the line that says which learner left the finite numbers, and where."""
    who = f"{learner}" if members == 1 else f"every one of {members} learners; the last, {learner},"
    return f"{who} left the finite numbers at step {step}: use a smaller step-size, or a normalizer"


def check_can_compute() -> None:
    """Pin the compiler's settings, where jax has not started yet.

    Raises:
        UnavailableError: this process was forked after jax had started, and would wait for ever.
    """
    if xla.forked():
        raise UnavailableError(
            "learning needs a process that was not forked after jax had started: use multiprocessing's spawn"
        )
    xla.pin()


def check_state(learner: LinearLearner, state: Any, feature_dim: int) -> None:
    """Check that a state given to go on from is one of this learner, for so many features.

    Raises:
        ArgumentError: it is another learner's, or of another width.
    """
    import jax

    begun = learner.init(feature_dim)
    same = str(jax.tree.structure(state)) == str(jax.tree.structure(begun)) and all(
        np.shape(a) == np.shape(b) for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(begun), strict=True)
    )
    if not same:
        raise ArgumentError(
            f"learner_state must be one of {type(learner.optimizer).__name__} for {feature_dim} features, "
            f"got {type(state).__name__} with leaves of shapes {[np.shape(leaf) for leaf in jax.tree.leaves(state)]}"
        )


def check_gamma(gamma: float | None) -> None:
    """Check a discount.

    Raises:
        ArgumentError: not between 0 and 1.
    """
    if gamma is not None and not 0.0 <= gamma <= 1.0:
        raise ArgumentError(f"gamma must be at least 0 and at most 1, got {gamma}")


def _grouped(members: Sequence[Member]) -> list[list[int]]:
    """Return the members' places in groups of one kind, at most `LANES` each."""
    kinds: dict[Any, list[int]] = {}
    for place, member in enumerate(members):
        kinds.setdefault(member.learner.parts, []).append(place)
    return [places[first : first + LANES] for places in kinds.values() for first in range(0, len(places), LANES)]


def _cpu() -> Any:
    """Return a context in which jax computes on the CPU, also where there is a GPU: the bits are promised there."""
    import jax

    return jax.default_device(jax.devices("cpu")[0])
