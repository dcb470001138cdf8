"""The learners: optimizers, normalisers, and the linear learners made of them. Importing this starts no jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from alberta_data.errors import ArgumentError
from alberta_data.learners.autostep import Autostep, AutostepState
from alberta_data.learners.base import Normalizer, Optimizer, OptimizerUpdate, Rule
from alberta_data.learners.idbd import IDBD, IDBDState
from alberta_data.learners.linear import (
    LearnerState,
    LinearLearner,
    NormalizedLearnerState,
    NormalizedLinearLearner,
    UpdateResult,
)
from alberta_data.learners.lms import LMS, LMSState
from alberta_data.learners.normalizers import (
    EMANormalizer,
    NormalizerState,
    OnlineNormalizer,
    WelfordNormalizer,
    WelfordState,
    create_normalizer_state,
)

OPTIMIZERS: dict[str, type[Optimizer]] = {"lms": LMS, "idbd": IDBD, "autostep": Autostep}
NORMALIZERS: dict[str, type[Normalizer] | None] = {"none": None, "ema": OnlineNormalizer, "welford": WelfordNormalizer}


def find_optimizer(name: str) -> type[Optimizer]:
    """Return the optimizer of that name.

    Raises:
        ArgumentError: there is none; the message lists what there is.
    """
    return _find("optimizer", name, OPTIMIZERS)


def find_normalizer(name: str) -> type[Normalizer] | None:
    """Return the normaliser of that name; None for `none`.

    Raises:
        ArgumentError: there is none; the message lists what there is.
    """
    return _find("normalizer", name, NORMALIZERS)


def learner_from_json(value: Any) -> LinearLearner:
    """Return the learner that `to_json` described.

    Raises:
        ArgumentError: unknown types, missing or unknown parameters, values out of range.
    """
    if not isinstance(value, Mapping) or set(value) != {"type", "optimizer", "normalizer"}:
        raise ArgumentError(f"a learner must have type, optimizer and normalizer, got {value!r:.80}")
    if value["type"] != LinearLearner.name:
        raise ArgumentError(f"learner must be {LinearLearner.name}, got {value['type']!r:.80}")
    optimizer = _rule_from_json(value["optimizer"], find_optimizer)
    normalizer = None if value["normalizer"] is None else _rule_from_json(value["normalizer"], find_normalizer)
    return LinearLearner(optimizer, normalizer)


def _find(kind: str, name: str, registry: Mapping[str, Any]) -> Any:
    if name not in registry:
        raise ArgumentError(f"{kind} must be one of {', '.join(registry)}, got {name!r:.80}")
    return registry[name]


def _rule_from_json(value: Any, find: Any) -> Any:
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise ArgumentError(f"optimizer and normalizer must have a type, got {value!r:.80}")
    kind = find(value["type"])
    given = {name: number for name, number in value.items() if name != "type"}
    known = {field.name for field in dataclasses.fields(kind)} if kind is not None else set()
    if set(given) != known:
        raise ArgumentError(
            f"{value['type']} must have exactly {', '.join(sorted(known))}, got {', '.join(given)!r:.80}"
        )
    return kind(**given)


__all__ = [
    "IDBD",
    "LMS",
    "NORMALIZERS",
    "OPTIMIZERS",
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
    "Rule",
    "UpdateResult",
    "WelfordNormalizer",
    "WelfordState",
    "create_normalizer_state",
    "find_normalizer",
    "find_optimizer",
    "learner_from_json",
]
