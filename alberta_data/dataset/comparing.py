"""Says in what two datasets differ: spec, settings, content, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alberta_data.dataset.opened import Dataset, open_dataset
from alberta_data.dataset.reproducing import Comparison, changed_settings


@dataclass(frozen=True)
class Difference:
    """In what two datasets differ.

    Attributes:
        identical: both have the same id.
        spec: entry → (a, b), of the entries of the spec that differ; parameters one by one, `parameters.name`.
        made_with: entry → (a, b), of the settings that differ; these alone are no difference.
        arrays: array → what differs in its form, as text; empty where the forms are the same.
        first_step: the first step whose numbers differ, or None.
        array: the array in which it does.
        differing: how many numbers differ in the steps that both have, from the first differing leaf on.
        max_ulp: the largest distance, in units in the last place.
    """

    identical: bool
    spec: Mapping[str, tuple[Any, Any]]
    made_with: Mapping[str, tuple[Any, Any]]
    arrays: Mapping[str, str]
    first_step: int | None
    array: str | None
    differing: int
    max_ulp: int


def diff(a: Any, b: Any) -> Difference:
    """Compare two datasets.

    Args:
        a: a dataset, or what `open_dataset` takes.
        b: likewise.

    Raises:
        DamagedDatasetError: what is read of one is not what was written.
    """
    a, b = (place if isinstance(place, Dataset) else open_dataset(place) for place in (a, b))
    comparison = Comparison()
    forms = _forms(a, b)
    if a.id != b.id:
        for name in a.store.root.arrays:
            if name in b.store.root.arrays and name not in forms:
                _compare(a, b, name, comparison)
    return Difference(
        a.id == b.id,
        changed_settings(_flat(a.spec), _flat(b.spec)),
        changed_settings(a.made_with, b.made_with),
        forms,
        comparison.first_step,
        comparison.array,
        comparison.differing,
        comparison.max_ulp,
    )


def _flat(value: Any, where: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        return {where: value}
    found = {}
    for name, entry in value.items():
        found.update(_flat(entry, f"{where}.{name}" if where else name))
    return found


def _forms(a: Dataset, b: Dataset) -> dict[str, str]:
    found = {}
    for name in sorted({*a.store.root.arrays, *b.store.root.arrays}):
        here, there = (dataset.arrays.get(name) for dataset in (a, b))
        if here is None or there is None:
            found[name] = f"only in {'the second' if here is None else 'the first'}"
        elif (here.dtype, here.shape[1:]) != (there.dtype, there.shape[1:]):
            found[name] = f"{here.dtype} {here.shape} in the first, {there.dtype} {there.shape} in the second"
    return found


def _compare(a: Dataset, b: Dataset, name: str, comparison: Comparison) -> None:
    """Compare the rows that both have, leaf by leaf; leaves of one digest need no reading."""
    left, right = (dataset.store.root.arrays[name] for dataset in (a, b))
    rows = min(a[name].shape[0], b[name].shape[0])
    size = left.leaf_rows
    found = Comparison()
    for index, (one, other) in enumerate(zip(left.leaves, right.leaves, strict=False)):
        first, stop = index * size, min((index + 1) * size, rows)
        if one != other and first < stop:
            found.add(name, first, *(np.asarray(dataset[name][first:stop]) for dataset in (a, b)))
    if not a.store.by_step(name):
        found.first_step = None  # Its rows are episodes, and no step.
    comparison.join(found)
