"""One learner over blocks, and what becomes of its metrics: all of them, or the means of windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, NonFiniteError
from alberta_data.learners import LinearLearner, NormalizedLinearLearner
from alberta_data.replay.fold import Fold, check_can_compute, check_gamma, check_state, lost_message
from alberta_data.replay.groups import NOT_TRACKED, Tracking
from alberta_data.replay.plain import PlainLearner
from alberta_data.replay.rows import check_column, rows_of
from alberta_data.replay.windows import WindowFold, edges_every


def is_own(learner: Any) -> bool:
    """Say whether a learner has a compiled loop of its own here; any other goes through a plain one."""
    return type(learner) in (LinearLearner, NormalizedLinearLearner) and learner.follows_rules


def check_learner(learner: Any) -> None:
    """Check that something is a learner.

    Raises:
        ArgumentError: it lacks `init` or `update`.
    """
    if not all(callable(getattr(learner, name, None)) for name in ("init", "update")):
        raise ArgumentError(f"learner must have init(feature_dim) and update(state, x, y), got {learner!r:.80}")


def check_given(learner: Any, state: Any, feature_dim: int, columns: int = 1) -> None:
    """Check a state given to one of this package's learners to go on from; see `check_state`.

    Args:
        learner: any; another's is not checked.
        state: None to begin; of several columns, every leaf has a first axis of them.
        feature_dim: features of an observation.
        columns: how many are learned side by side.
    """
    import jax

    if state is None or not is_own(learner):
        return
    if columns > 1 and all(np.ndim(leaf) > 0 for leaf in jax.tree.leaves(state)):
        state = jax.tree.map(lambda leaf: leaf[0], state)
    check_state(learner, state, feature_dim)


class Everything:
    """Keep the metrics of all steps.

    Args:
        steps: how many will come.
    """

    def __init__(self, steps: int):
        self._steps = steps
        self._taken = 0
        self._tree: Any = None

    def add(self, metrics: Any) -> None:
        """Take the metrics of the steps that follow, a tree of `(n, …)`."""
        import jax

        if self._tree is None:
            self._tree = jax.tree.map(lambda leaf: np.empty((self._steps, *leaf.shape[1:]), leaf.dtype), metrics)
        count = len(jax.tree.leaves(metrics)[0])
        for table, leaf in zip(jax.tree.leaves(self._tree), jax.tree.leaves(metrics), strict=True):
            table[self._taken : self._taken + count] = leaf
        self._taken += count

    def result(self) -> Any:
        """Return the tree of `(steps, …)`."""
        return self._tree


class Means:
    """Keep the means of windows of the metrics.

    Args:
        steps: how many will come.
        every: steps of a window; the last may be short.

    Raises:
        ArgumentError: `every` is not a whole number of at least 1.
    """

    def __init__(self, steps: int, every: int):
        if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
            raise ArgumentError(f"every must be a whole number of at least 1, got {every!r}")
        self._edges = edges_every(steps, int(every))
        self._folds: list[WindowFold] = []
        self._structure: Any = None

    def add(self, metrics: Any) -> None:
        """Take the metrics of the steps that follow, a tree of `(n, …)`."""
        import jax

        leaves, self._structure = jax.tree.flatten(metrics)
        self._folds = self._folds or [WindowFold(self._edges) for _ in leaves]
        for fold, leaf in zip(self._folds, leaves, strict=True):
            fold.add(np.asarray(leaf, np.float32))

    def result(self) -> Any:
        """Return the tree of `(windows, …)` float32."""
        import jax

        means = [fold.curves().mean.astype(np.float32) for fold in self._folds]
        return jax.tree.unflatten(self._structure, means)


class Learned:
    """One learner over blocks, K target columns being K learners side by side.

    Args:
        learner: any; those of this package run in the tool's own loop.
        kept: an `Everything` or a `Means`.
        column: the one target column to learn; None for all there are.
        state: the learner's, to go on from; with several columns its leaves have a first axis of columns.
        gamma: learn values from transitions with this discount; None for plain targets.
        tracking: what to record, for the learners of this package.

    Raises:
        ArgumentError: a discount out of range; tracking of a learner that is not of this package.
    """

    def __init__(
        self,
        learner: Any,
        kept: Any,
        *,
        column: int | None = None,
        state: Any = None,
        gamma: float | None = None,
        tracking: Tracking = NOT_TRACKED,
    ):
        check_gamma(gamma)
        check_can_compute()
        if any(tracking) and not is_own(learner):
            parts = [getattr(learner, name, None) for name in ("optimizer", "normalizer")]
            own = [type(part).__name__ for part in parts if part is not None and not part.follows_a_rule]
            raise ArgumentError(
                "tracking needs a LinearLearner with an optimizer and a normalizer of this package, "
                f"got {', '.join(own) or type(learner).__name__}"
            )
        self.learner = learner
        self.fold: Fold | None = None
        self._kept = kept
        self._column = column
        self._given = state
        self._gamma = gamma
        self._tracking = tracking
        self._columns: list[int] = []
        self._plain: list[PlainLearner] = []

    def over(self, blocks: Iterable[Block]) -> tuple[Any, Any]:
        """Learn from blocks that follow each other.

        Returns:
            state and metrics; with several columns the state's leaves have a first axis of columns, and the metrics
            one after that of the steps.

        Raises:
            NonFiniteError: a state left the finite numbers.
            ArgumentError: no step at all, or blocks that are not what the learner reads.
        """
        from contextlib import ExitStack

        with ExitStack() as stack:
            for block in blocks:
                if not self._columns:
                    self._begin(block)
                    if self.fold is not None:
                        stack.enter_context(self.fold)
                self._kept.add(self._advance(block))
        if not self._columns:
            raise ArgumentError("there must be at least one step to learn from, got none")
        return self._state(), self._kept.result()

    def _begin(self, block: Block) -> None:
        rows = rows_of(block, td=self._gamma is not None)
        width = rows.targets.shape[1]
        self._columns = list(range(width)) if self._column is None else [check_column(self._column, width)]
        size = rows.observations.shape[1]
        if is_own(self.learner):
            states = None if self._given is None else self._given_states()
            self.fold = Fold(
                [self.learner],
                size,
                columns=self._columns,
                gamma=self._gamma,
                states=states,
                tracking=self._tracking,
            )
            return
        states = [self.learner.init(size) for _ in self._columns] if self._given is None else self._given_states()
        self._plain = [
            PlainLearner(self.learner, state, column, self._gamma)
            for state, column in zip(states, self._columns, strict=True)
        ]

    def _given_states(self) -> Sequence[Any]:
        import jax

        if len(self._columns) == 1:
            return [self._given]
        return [jax.tree.map(lambda leaf, at=at: leaf[at], self._given) for at in range(len(self._columns))]

    def _advance(self, block: Block) -> Any:
        import jax

        if self.fold is not None:
            found = self.fold.advance(block)
            for member, step in self.fold.stopped.items():
                raise NonFiniteError(lost_message(self.fold.members[member].learner, step), step=step)
            metrics = np.concatenate([group.metrics for group in found], axis=-1)
            return metrics[..., 0] if metrics.shape[-1] == 1 else np.moveaxis(metrics, -1, 1)
        rows = rows_of(block, td=self._gamma is not None)
        trees = [plain.advance(rows) for plain in self._plain]
        for plain in self._plain:
            if plain.stopped is not None:
                raise NonFiniteError(lost_message(type(self.learner).__name__, plain.stopped), step=plain.stopped)
        return trees[0] if len(trees) == 1 else jax.tree.map(lambda *leaves: np.stack(leaves, 1), *trees)

    def _state(self) -> Any:
        import jax

        states = self.fold.states() if self.fold is not None else [plain.state for plain in self._plain]
        if len(states) == 1:
            return jax.tree.map(jax.numpy.asarray, states[0])
        return jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *states)
