"""Learners folded over blocks, whatever made them: a grid in one pass, single learners, straight from a stream."""

from __future__ import annotations

from alberta_data.replay.fold import Fold, GroupMetrics, Member
from alberta_data.replay.groups import Tracking
from alberta_data.replay.streaming import (
    BatchedLearningResult,
    BatchedNormalizedResult,
    NormalizerHistory,
    NormalizerTrackingConfig,
    StepSizeHistory,
    StepSizeTrackingConfig,
    run_learning_loop,
    run_learning_loop_batched,
    run_normalized_learning_loop,
    run_normalized_learning_loop_batched,
)
from alberta_data.replay.trajectory import (
    learn_from_trajectory,
    learn_from_trajectory_normalized,
    metrics_to_dicts,
)
from alberta_data.replay.windows import Curves, WindowFold, edges_every, even_edges

__all__ = [
    "BatchedLearningResult",
    "BatchedNormalizedResult",
    "Curves",
    "Fold",
    "GroupMetrics",
    "Member",
    "NormalizerHistory",
    "NormalizerTrackingConfig",
    "StepSizeHistory",
    "StepSizeTrackingConfig",
    "Tracking",
    "WindowFold",
    "edges_every",
    "even_edges",
    "learn_from_trajectory",
    "learn_from_trajectory_normalized",
    "metrics_to_dicts",
    "run_learning_loop",
    "run_learning_loop_batched",
    "run_normalized_learning_loop",
    "run_normalized_learning_loop_batched",
]
