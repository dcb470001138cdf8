"""Learning from a trajectory: arrays, or a stored dataset, in the tool's own loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError
from alberta_data.learners.linear import COLUMNS
from alberta_data.replay.collect import Everything, Learned, Means, check_given, check_learner
from alberta_data.replay.rows import TRANSITIONS
from alberta_data.replay.traced import is_traced, over_rows, refuse_recordings

PAIRS = ("observations", "targets")


def learn_from_trajectory(
    learner: Any,
    observations: Any,
    targets: Any = None,
    learner_state: Any = None,
    *,
    every: int | None = None,
    target: int | str | None = None,
    td: bool = False,
    gamma: float = 0.99,
) -> tuple[Any, Any]:
    """Learn from pairs in their order.

    The metrics and the state are the same bits whether the pairs come as arrays or from a dataset.

    Args:
        learner: an object with `init` and `update`: a `LinearLearner`, one of `alberta_framework`, your own.
        observations: `(num_steps, feature_dim)`, or a dataset as `open_dataset` returns it.
        targets: `(num_steps, K)` or `(num_steps,)`; left out with a dataset.
        learner_state: to go on from; None to begin.
        every: return the means of windows of this many steps (the last may be short) in place of all steps.
        target: learn this one column of the targets, by number or by its name in the dataset; by default all.
        td: learn values from the transitions of a dataset: the target is `r + γ V(s')`, `r` where terminated, V being
            the learner's own before the update.
        gamma: γ, 0 to 1.

    Returns:
        `(state, metrics)`, metrics `(num_steps, 3)`, or 4 columns with a normaliser; a learner of your own has metrics
        of its own. K > 1 target columns are K learners side by side: metrics `(num_steps, K, 3)`, and every array of
        the state has a first axis of K.

    Raises:
        ArgumentError: shapes that don't fit, an unknown column, a dataset without transitions.
        NonFiniteError: the state left the finite numbers; `step` says where. Not raised of arrays under `jit`, `vmap`
            or `grad`, where nothing can be looked at.
        DamagedDatasetError: the dataset is not what its id says.
    """
    import jax
    import jax.numpy as jnp

    check_learner(learner)
    stored = hasattr(observations, "blocks")
    if is_traced(learner, targets, learner_state) or (not stored and is_traced(observations)):
        refuse_recordings(every=every)
        if stored:
            raise ArgumentError("a dataset is read outside of jit, vmap and grad: give learner and state from there")
        _check_arrays(observations, targets, td)
        observations, targets = jnp.asarray(observations), jnp.asarray(targets)
        _check_shapes(observations.shape, targets.shape)
        column = _column(observations, target)
        width = targets.shape[1] if targets.ndim == 2 and column is None else 1
        check_given(learner, learner_state, observations.shape[1], width)
        return over_rows(learner, observations, targets, learner_state, column)
    # Where nothing that is given is traced the loop is one outside, wherever it is called.
    with jax.ensure_compile_time_eval():
        blocks, steps = _source(observations, targets, td)
        learned = Learned(
            learner,
            Everything(steps) if every is None else Means(steps, every),
            column=_column(observations, target),
            state=learner_state,
            gamma=gamma if td else None,
        )
        state, metrics = learned.over(blocks)
        return state, on_device(metrics)


def learn_from_trajectory_normalized(
    learner: Any, observations: Any, targets: Any = None, learner_state: Any = None, **options: Any
) -> tuple[Any, Any]:
    """Learn with a `NormalizedLinearLearner`: `learn_from_trajectory`, whose metrics then have 4 columns."""
    return learn_from_trajectory(learner, observations, targets, learner_state, **options)


def metrics_to_dicts(metrics: Any, normalized: bool = False) -> list[dict[str, float]]:
    """Return metrics as a list of dicts, one a step; for small runs.

    Args:
        metrics: `(num_steps, 3)`, or `(num_steps, 4)` with a normaliser.
        normalized: expect the fourth column.

    Raises:
        ArgumentError: another number of columns.
    """
    names = COLUMNS if normalized else COLUMNS[:3]
    table = np.asarray(metrics)
    if table.ndim != 2 or table.shape[1] < len(names):
        raise ArgumentError(f"metrics must have the columns {', '.join(names)}, got shape {table.shape}")
    return [dict(zip(names, row, strict=False)) for row in table.tolist()]


def on_device(tree: Any) -> Any:
    """Return a tree of NumPy arrays as jax arrays."""
    import jax

    return jax.tree.map(jax.numpy.asarray, tree)


def _source(observations: Any, targets: Any, td: bool) -> tuple[Iterator[Block], int]:
    """Return the blocks of arrays or of a dataset, and how many steps they are."""
    if hasattr(observations, "blocks"):
        if targets is not None:
            raise ArgumentError("targets must be left out when a dataset is given: they are stored in it")
        steps = int(observations.steps)
        return observations.blocks(0, steps, names=TRANSITIONS if td else PAIRS), steps
    _check_arrays(observations, targets, td)
    arrays = {"observations": np.asarray(observations, np.float32), "targets": np.asarray(targets, np.float32)}
    _check_shapes(arrays["observations"].shape, arrays["targets"].shape)
    steps = len(arrays["observations"])
    return iter([Block(0, arrays)] if steps else []), steps


def _check_arrays(observations: Any, targets: Any, td: bool) -> None:
    if isinstance(observations, (str, Path)):
        raise ArgumentError(f"observations must be an array or a dataset, got {str(observations)!r}: open_dataset it")
    if td:
        raise ArgumentError("td needs a dataset with next_observations, rewards and terminated, got arrays")
    if targets is None:
        raise ArgumentError("targets must be given with observations that are an array")


def _check_shapes(of_observations: tuple[int, ...], of_targets: tuple[int, ...]) -> None:
    if len(of_observations) != 2:
        raise ArgumentError(f"observations must be (num_steps, feature_dim), got {of_observations}")
    if len(of_targets) not in (1, 2) or of_targets[0] != of_observations[0]:
        raise ArgumentError(f"targets must have one row a step ({of_observations[0]}), got {of_targets}")


def _column(observations: Any, target: int | str | None) -> int | None:
    """Return the number of a target column.

    Raises:
        ArgumentError: a name that is none of the dataset's columns, or a name without a dataset.
    """
    if not isinstance(target, str):
        return target
    columns = list(getattr(observations, "target_columns", None) or [])
    if target not in columns:
        raise ArgumentError(f"target must be one of the columns {', '.join(columns) or '(unnamed)'}, got {target!r}")
    return columns.index(target)
