"""The compiled loop: many steps of one learner, or of several in lanes, over the rows of a tile.

One program serves any number of steps (the trip count is data), so a step alone, the end of a dataset and a whole
tile round alike. What a program is compiled for is a `Kind` and the shapes; every parameter is an argument.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from alberta_data.learners import core


class Kind(NamedTuple):
    """What decides a loop's text.

    Attributes:
        optimizer: the type.
        normalizer: the type, or None.
        td: the target is `r + γ V(s')`, made from the learner's own state.
        step_sizes: keep histories of the step-sizes, this many rows a tile; 0 for none.
        scales: likewise of the normaliser's mean and variance.
    """

    optimizer: Any
    normalizer: Any
    td: bool = False
    step_sizes: int = 0
    scales: int = 0


class Tile(NamedTuple):
    """Rows of consecutive steps, as the loop reads them; `n` may exceed the steps to take.

    Attributes:
        observations: `(n, D)`.
        targets: `(n,)`, or `(n, lanes)` where the lanes have targets of their own; the rewards for TD.
        next_observations: `(n, D)` for TD, else None.
        terminated: `(n,)` bool for TD, else None.
    """

    observations: Any
    targets: Any
    next_observations: Any = None
    terminated: Any = None


class Numbers(NamedTuple):
    """Scalars that the loop must not know when it is compiled.

    Attributes:
        steps: how many rows to take, int32.
        zero: 0, int32; see `alberta_data.exact`.
        gamma: the discount of TD, float32.
        step_sizes: interval and phase (steps before this tile, mod the interval) of the history, int32 `(2,)`.
        scales: likewise for the normaliser.
    """

    steps: Any
    zero: Any
    gamma: Any
    step_sizes: Any
    scales: Any


class Advanced(NamedTuple):
    """What a tile gave.

    Attributes:
        state: the packed state after the last step taken.
        metrics: `(n, columns)` or `(n, columns, lanes)`; rows past the steps taken are zero.
        finite: whether every number of the state is finite, `()` or `(lanes,)`.
        histories: step-sizes `(rows, D + 1, …)`, normalisers of the step-sizes, means, variances, each where kept.
    """

    state: core.PackedLearner
    metrics: Any
    finite: Any
    histories: tuple[Any, ...]


@cache
def loop(kind: Kind) -> Any:
    """Return the compiled `(packed state, Tile, Numbers) -> Advanced` of a kind, for lanes and for none."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def run(state: core.PackedLearner, tile: Tile, numbers: Numbers) -> Advanced:
        lanes = state.weights.shape[1:]

        def body(carry: Any) -> Any:
            t, state, metrics, histories = carry
            x = _row(tile.observations, t, lanes)
            taken = core.step(kind.optimizer, kind.normalizer, state, x, target(state, t), numbers.zero)
            row = jnp.concatenate(core.metrics(taken))
            metrics = lax.dynamic_update_index_in_dim(metrics, row, t, 0)
            return t + 1, taken.state, metrics, record(taken, t, histories)

        def target(state: core.PackedLearner, t: Any) -> Any:
            y = _number(tile.targets, t, lanes)
            if not kind.td:
                return y
            value = core.predict(state, _row(tile.next_observations, t, lanes), numbers.zero)
            ahead = core.seal(numbers.gamma * value, numbers.zero)
            return jnp.where(tile.terminated[t], y, y + ahead)

        def record(taken: core.Taken, t: Any, histories: tuple[Any, ...]) -> tuple[Any, ...]:
            seen = _seen(kind, taken)
            if not seen:
                return histories
            # Every step writes to the row of the next recording; the step that is one writes last.
            whens = [numbers.step_sizes] * bool(kind.step_sizes) + [numbers.scales] * bool(kind.scales)
            rows = [(when[1] + t + when[0] - 1) // when[0] - (when[1] + when[0] - 1) // when[0] for when in whens]
            at = [rows[0]] * (len(seen) - 2 * bool(kind.scales)) + [rows[-1]] * (2 * bool(kind.scales))
            return tuple(
                lax.dynamic_update_index_in_dim(history, value, row, 0)
                for history, value, row in zip(histories, seen, at, strict=True)
            )

        columns = 3 if kind.normalizer is None else 4
        metrics = jnp.zeros((tile.observations.shape[0], columns, *lanes), jnp.float32)
        start = (jnp.int32(0), state, metrics, _empty_histories(kind, state))
        _, state, metrics, histories = lax.while_loop(lambda carry: carry[0] < numbers.steps, body, start)
        return Advanced(state, metrics, _finite(state), histories)

    return jax.jit(run)


def _row(table: Any, t: Any, lanes: tuple[int, ...]) -> Any:
    """Return row t as `(D,)`, or `(D, 1)` beside lanes."""
    from jax import lax

    row = lax.dynamic_index_in_dim(table, t, 0, keepdims=False)
    return row[:, None] if lanes else row


def _number(table: Any, t: Any, lanes: tuple[int, ...]) -> Any:
    """Return the target of step t as `(1,)`, or `(1, 1)` or `(1, lanes)` beside lanes."""
    from jax import lax

    y = lax.dynamic_index_in_dim(table, t, 0, keepdims=True)
    return y[:, None] if lanes and table.ndim == 1 else y


def _seen(kind: Kind, taken: core.Taken) -> tuple[Any, ...]:
    """Return what the histories record of a step."""
    import jax.numpy as jnp

    seen: tuple[Any, ...] = ()
    if kind.step_sizes:
        seen = (jnp.broadcast_to(taken.step_sizes, taken.state.weights.shape),)
        if kind.optimizer.normalizer_row is not None:
            seen = (*seen, taken.state.optimizer.rows[kind.optimizer.normalizer_row])
    if kind.scales and taken.state.normalizer is not None:
        seen = (*seen, *taken.state.normalizer.rows[:2])
    return seen


def _empty_histories(kind: Kind, state: core.PackedLearner) -> tuple[Any, ...]:
    import jax.numpy as jnp

    shapes: list[tuple[int, ...]] = []
    if kind.step_sizes:
        rows = 1 if kind.optimizer.normalizer_row is None else 2
        shapes += [(kind.step_sizes, *state.weights.shape)] * rows
    if kind.scales and state.normalizer is not None:
        shapes += [(kind.scales, *state.normalizer.rows[0].shape)] * 2
    return tuple(jnp.zeros(shape, jnp.float32) for shape in shapes)


def _finite(state: core.PackedLearner) -> Any:
    """Return whether every float of the state is finite, lane by lane."""
    import jax
    import jax.numpy as jnp

    floats = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    found = [jnp.isfinite(leaf).all(axis=0) for leaf in floats]
    return jnp.stack(found).all(axis=0)
