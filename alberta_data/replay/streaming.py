"""Learning straight from a stream, nothing stored, with the step-sizes and the normaliser recorded on the way.

The blocks are those that would have been stored, so the bits are those of learning from the dataset.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alberta_data import keys as keys_of_jax
from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, NonFiniteError
from alberta_data.replay.collect import Everything, Learned, check_given, check_learner
from alberta_data.replay.fold import THREADS
from alberta_data.replay.groups import Tracking
from alberta_data.replay.traced import is_traced, over_stream, refuse_recordings
from alberta_data.replay.trajectory import on_device
from alberta_data.streams.base import check_steps, check_stream


@dataclass(frozen=True)
class StepSizeTrackingConfig:
    """Record the step-sizes after steps 0, interval, 2·interval and so on.

    Args:
        interval: steps from one recording to the next, at least 1 and at most the steps of the run.
        include_bias: record the bias's as well.
    """

    interval: int
    include_bias: bool = True


@dataclass(frozen=True)
class NormalizerTrackingConfig:
    """Record the normaliser after steps 0, interval, 2·interval and so on.

    Args:
        interval: steps from one recording to the next, at least 1 and at most the steps of the run.
    """

    interval: int


class StepSizeHistory(NamedTuple):
    """Step-sizes over a run; of several seeds, each array but the indices has a first axis of seeds.

    Attributes:
        step_sizes: `(recordings, feature_dim)`.
        bias_step_sizes: `(recordings,)`, or None where not asked for.
        recording_indices: the steps after which they were recorded, `(recordings,)`.
        normalizers: Autostep's v, `(recordings, feature_dim)`; None for other optimizers.
    """

    step_sizes: Any
    bias_step_sizes: Any
    recording_indices: Any
    normalizers: Any = None


class NormalizerHistory(NamedTuple):
    """A normaliser over a run.

    Attributes:
        means: `(recordings, feature_dim)`.
        variances: `(recordings, feature_dim)`.
        recording_indices: the steps after which they were recorded, `(recordings,)`.
    """

    means: Any
    variances: Any
    recording_indices: Any


class BatchedLearningResult(NamedTuple):
    """Runs of several seeds.

    Attributes:
        states: every array with a first axis of seeds.
        metrics: `(seeds, num_steps, 3)`.
        step_size_history: every array but the indices with a first axis of seeds, or None.
    """

    states: Any
    metrics: Any
    step_size_history: StepSizeHistory | None = None


class BatchedNormalizedResult(NamedTuple):
    """Runs of several seeds with a normaliser.

    Attributes:
        states: every array with a first axis of seeds.
        metrics: `(seeds, num_steps, 4)`.
        step_size_history: as in `BatchedLearningResult`.
        normalizer_history: likewise.
    """

    states: Any
    metrics: Any
    step_size_history: StepSizeHistory | None = None
    normalizer_history: NormalizerHistory | None = None


def run_learning_loop(
    learner: Any,
    stream: Any,
    num_steps: int,
    key: Any,
    learner_state: Any = None,
    step_size_tracking: StepSizeTrackingConfig | None = None,
    normalizer_tracking: NormalizerTrackingConfig | None = None,
) -> tuple[Any, ...]:
    """Learn from a stream, nothing stored.

    Args:
        learner: an object with `init` and `update`.
        stream: an object with `feature_dim`, `init(key)`, `step(state, idx)`.
        num_steps: steps to take, at least 1.
        key: a threefry key, or a seed.
        learner_state: to go on from; None to begin.
        step_size_tracking: also return a `StepSizeHistory`.
        normalizer_tracking: also return a `NormalizerHistory`, for a learner with a normaliser.

    Returns:
        `(state, metrics)`, followed by the histories asked for, in this order.

    Raises:
        ArgumentError: `num_steps` that is no whole number of at least 1, an interval below 1 or above it, tracking of
            what the learner does not have.
        NonFiniteError: the state left the finite numbers; `step` says where. Not raised under `jit`, `vmap` or
            `grad`, where nothing can be looked at.
    """
    import jax

    num_steps = check_steps(num_steps)
    check_learner(learner)
    check_stream(stream)
    tracking = _tracking(learner, num_steps, step_size_tracking, normalizer_tracking)
    if is_traced(key, learner, learner_state):
        refuse_recordings(step_size_tracking=step_size_tracking, normalizer_tracking=normalizer_tracking)
        check_given(learner, learner_state, int(stream.feature_dim))
        return over_stream(learner, stream, num_steps, key, learner_state)
    # Where nothing that is given is traced the loop is one outside, wherever it is called.
    with jax.ensure_compile_time_eval():
        learned = Learned(learner, Everything(num_steps), column=None, state=learner_state, tracking=tracking)
        state, metrics = learned.over(_blocks(stream, key, num_steps))
        histories = _histories(learned, num_steps, step_size_tracking, normalizer_tracking)
        return (state, on_device(metrics), *(history for history in histories if history is not None))


def run_normalized_learning_loop(
    learner: Any,
    stream: Any,
    num_steps: int,
    key: Any,
    learner_state: Any = None,
    step_size_tracking: StepSizeTrackingConfig | None = None,
    normalizer_tracking: NormalizerTrackingConfig | None = None,
) -> tuple[Any, ...]:
    """Learn from a stream with a `NormalizedLinearLearner`: `run_learning_loop`, whose metrics then have 4 columns."""
    return run_learning_loop(learner, stream, num_steps, key, learner_state, step_size_tracking, normalizer_tracking)


def run_learning_loop_batched(
    learner: Any,
    stream: Any,
    num_steps: int,
    keys: Any,
    learner_state: Any = None,
    step_size_tracking: StepSizeTrackingConfig | None = None,
) -> BatchedLearningResult:
    """Run `run_learning_loop` for several keys, each as if alone.

    Args:
        learner: see `run_learning_loop`.
        stream: likewise.
        num_steps: likewise.
        keys: keys with a first axis of seeds, or a sequence of seeds.
        learner_state: where every run begins.
        step_size_tracking: see `run_learning_loop`.

    A run that leaves the finite numbers is all NaN in the result, and a warning names it; the others go on.

    Raises:
        NonFiniteError: every run left the finite numbers.
    """
    states, metrics, *histories = _batched(learner, stream, num_steps, keys, learner_state, step_size_tracking, None)
    return BatchedLearningResult(states, metrics, *histories)


def run_normalized_learning_loop_batched(
    learner: Any,
    stream: Any,
    num_steps: int,
    keys: Any,
    learner_state: Any = None,
    step_size_tracking: StepSizeTrackingConfig | None = None,
    normalizer_tracking: NormalizerTrackingConfig | None = None,
) -> BatchedNormalizedResult:
    """Run `run_normalized_learning_loop` for several keys, each as if alone; see `run_learning_loop_batched`."""
    states, metrics, *found = _batched(
        learner, stream, num_steps, keys, learner_state, step_size_tracking, normalizer_tracking
    )
    sizes = found.pop(0) if step_size_tracking is not None else None
    return BatchedNormalizedResult(states, metrics, sizes, found.pop(0) if found else None)


def _blocks(stream: Any, key: Any, num_steps: int) -> Iterator[Block]:
    from alberta_data import generation

    return (block for block, _ in generation.blocks(stream, key, num_steps))


def _batched(learner: Any, stream: Any, num_steps: int, keys: Any, *rest: Any) -> tuple[Any, ...]:
    import jax

    num_steps = check_steps(num_steps)
    keys = _several(keys)
    if is_traced(keys, learner, rest):
        many = jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *map(_key, keys))
        return jax.vmap(lambda key: run_learning_loop(learner, stream, num_steps, key, *rest))(many)  # type: ignore[no-any-return]

    def run(key: Any) -> tuple[Any, ...] | NonFiniteError:
        try:
            return run_learning_loop(learner, stream, num_steps, key, *rest)
        except NonFiniteError as err:
            return err

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(run, keys))
    runs = _filled(found)
    states, metrics, *histories = (
        jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *parts) for parts in zip(*runs, strict=True)
    )
    # The recordings are at the same steps for every seed.
    histories = [history._replace(recording_indices=history.recording_indices[0]) for history in histories]
    return (states, metrics, *histories)


def _several(keys: Any) -> list[Any]:
    """Return keys or seeds as a list.

    Raises:
        ArgumentError: a single key, none, or something else.
    """
    shape = (len(keys),) if isinstance(keys, (list, tuple)) else getattr(keys, "shape", ())
    if not shape or (len(shape) == 1 and getattr(keys, "dtype", None) == np.uint32):
        raise ArgumentError(
            f"keys must be one a run, got {keys!r:.80}: jax.random.split(key, n) makes n, a list of seeds will do"
        )
    found = list(keys)
    if not found:
        raise ArgumentError("keys must be at least one, got none")
    return found


def _key(key_or_seed: Any) -> Any:
    return keys_of_jax.key(int(key_or_seed)) if isinstance(key_or_seed, (int, np.integer)) else key_or_seed


def _filled(found: list[Any]) -> list[tuple[Any, ...]]:
    """Return the runs with those that were lost made NaN, and warn of them."""
    import jax
    import jax.numpy as jnp

    lost = {place: run for place, run in enumerate(found) if isinstance(run, NonFiniteError)}
    if len(lost) == len(found):
        raise next(iter(lost.values()))
    like = next(run for run in found if not isinstance(run, NonFiniteError))
    nothing = jax.tree.map(lambda leaf: leaf * jnp.nan if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, like)
    if lost:
        where = ", ".join(f"key {place} at step {err.step}" for place, err in lost.items())
        warnings.warn(f"learners left the finite numbers, and are NaN in the result: {where}", stacklevel=4)
    return [nothing if place in lost else run for place, run in enumerate(found)]


def _tracking(learner: Any, num_steps: int, sizes: Any, scales: Any) -> Tracking:
    for config in (sizes, scales):
        if config is None:
            continue
        interval = getattr(config, "interval", None)
        if isinstance(interval, bool) or not isinstance(interval, (int, np.integer)):
            raise ArgumentError(f"tracking must be a config with a whole number as interval, got {config!r:.80}")
        if config.interval < 1:
            raise ArgumentError(f"interval must be >= 1, got {config.interval}")
        if config.interval > num_steps:
            raise ArgumentError(f"interval must be <= num_steps ({num_steps}), got {config.interval}")
    if scales is not None and getattr(learner, "normalizer", None) is None:
        raise ArgumentError("normalizer_tracking needs a learner with a normalizer, got one without")
    return Tracking(sizes.interval if sizes is not None else 0, scales.interval if scales is not None else 0)


def _histories(learned: Learned, num_steps: int, sizes: Any, scales: Any) -> tuple[Any, Any]:
    if learned.fold is None or (sizes is None and scales is None):
        return None, None
    import jax.numpy as jnp

    recorded = learned.fold.histories(0)
    of_sizes = of_scales = None
    if scales is not None:
        *recorded, means, variances = recorded
        kept = num_steps // scales.interval
        at = np.arange(kept, dtype=np.int32) * scales.interval
        of_scales = NormalizerHistory(*map(jnp.asarray, (means[:kept], variances[:kept], at)))
    if sizes is not None:
        kept = num_steps // sizes.interval
        rows, *normalizers = (jnp.asarray(table[:kept]) for table in recorded)
        of_sizes = StepSizeHistory(
            rows[:, :-1],
            rows[:, -1] if sizes.include_bias else None,
            jnp.asarray(np.arange(kept, dtype=np.int32) * sizes.interval),
            normalizers[0][:, :-1] if normalizers else None,
        )
    return of_sizes, of_scales
