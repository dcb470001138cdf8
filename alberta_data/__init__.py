"""alberta-data: streams of a drifting world, generated once, frozen on disk, verified by anyone, replayed bit for bit.

    from alberta_data import AbruptChangeStream, LinearLearner, Autostep, create_dataset, learn_from_trajectory

    dataset = create_dataset(AbruptChangeStream(feature_dim=20), steps=1_000_000, seed=0)
    state, metrics = learn_from_trajectory(LinearLearner(Autostep()), dataset)

Every public name can be imported from here; the module behind it is imported when it is first asked for. Importing
this package imports neither jax nor gymnasium, and changes no environment variable.
"""

from __future__ import annotations

from typing import Any as _Any

from alberta_data.lazy import exports as _exports
from alberta_data.lazy import homes_of as _homes_of

_NAMES = {
    "alberta_data.blocks": ("Block", "TimeStep"),
    "alberta_data.errors": (
        "AlbertaDataError",
        "ArgumentError",
        "DamagedDatasetError",
        "DestinationError",
        "DifferenceFound",
        "IncompleteDatasetError",
        "NonFiniteError",
        "RefusedError",
        "StorageError",
        "UnavailableError",
    ),
    "alberta_data.xla": ("made_with",),
    "alberta_data.streams.synthetic": (
        "AbruptChangeState",
        "AbruptChangeStream",
        "AbruptChangeTarget",
        "CyclicState",
        "CyclicStream",
        "CyclicTarget",
        "DynamicScaleShiftState",
        "DynamicScaleShiftStream",
        "PeriodicChangeState",
        "PeriodicChangeStream",
        "PeriodicChangeTarget",
        "RandomWalkState",
        "RandomWalkStream",
        "RandomWalkTarget",
        "ScaleDriftState",
        "ScaleDriftStream",
        "ScaledStreamState",
        "ScaledStreamWrapper",
        "ScanStream",
        "SuttonExperiment1State",
        "SuttonExperiment1Stream",
        "make_scale_range",
    ),
    "alberta_data.streams.gymnasium": (
        "GymnasiumStream",
        "PredictionMode",
        "TDStream",
        "collect_trajectory",
        "make_epsilon_greedy_policy",
        "make_gymnasium_stream",
        "make_random_policy",
    ),
    "alberta_data.environments.parameters": ("EnvironmentStream",),
    "alberta_data.dataset": (
        "Dataset",
        "DatasetPlan",
        "Difference",
        "Entry",
        "Reproduction",
        "create_dataset",
        "dataset_name",
        "delete_dataset",
        "diff",
        "extend",
        "list_datasets",
        "open_dataset",
        "plan_dataset",
        "reproduce",
    ),
    "alberta_data.learners": (
        "LMS",
        "IDBD",
        "Autostep",
        "AutostepState",
        "EMANormalizer",
        "IDBDState",
        "LMSState",
        "LearnerState",
        "LinearLearner",
        "NormalizedLearnerState",
        "NormalizedLinearLearner",
        "Normalizer",
        "NormalizerState",
        "OnlineNormalizer",
        "Optimizer",
        "OptimizerUpdate",
        "UpdateResult",
        "WelfordNormalizer",
        "WelfordState",
        "create_normalizer_state",
    ),
    "alberta_data.runs": ("Run", "check_receipt", "learn", "plan_learning"),
    "alberta_data.share": (
        "annotate",
        "card",
        "export",
        "fetch",
        "freeze",
        "pack",
        "push",
        "read_recipe",
        "recipe",
        "unpack",
    ),
    "alberta_data.replay": (
        "BatchedLearningResult",
        "BatchedNormalizedResult",
        "NormalizerHistory",
        "NormalizerTrackingConfig",
        "StepSizeHistory",
        "StepSizeTrackingConfig",
        "learn_from_trajectory",
        "learn_from_trajectory_normalized",
        "metrics_to_dicts",
        "run_learning_loop",
        "run_learning_loop_batched",
        "run_normalized_learning_loop",
        "run_normalized_learning_loop_batched",
    ),
}
HOMES = _homes_of(_NAMES)
__all__ = sorted([*HOMES, "__version__"])
_find, _names = _exports(globals(), HOMES)


def __getattr__(name: str) -> _Any:
    """Import the module that has `name`, and keep the name here."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = found = version("alberta-data")
        return found
    return _find(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
