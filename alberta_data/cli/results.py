"""A run as a person reads it: its members ranked, their errors in ten windows as a line of small bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from alberta_data.cli import numbers, output

_BARS = ("▁▂▃▄▅▆▇█", "12345678")
_NOT_FINITE = "!"


def tell(dataset: Any, run: Any, *, repeated: bool) -> None:
    """Print a run: which dataset, where it is, and the table of its members."""
    receipt = run.receipt
    first, steps = receipt["run"]["range"]
    where = "all" if steps == dataset.steps else f"{numbers.with_commas(steps)} from {numbers.with_commas(first)} of"
    output.put(f"{dataset.store.name}, id {dataset.id}, {where} {numbers.with_commas(dataset.steps)} steps")
    passes = f", {len(run.members)} learners" if len(run.members) > 1 else ""
    output.put(f"{numbers.short(steps / run.seconds)} steps/s{passes}, digest {run.digest}")
    if repeated:
        output.put("learned again, the digest is that of the receipt")
    floor = receipt["noise_floor"]
    if floor is not None:
        output.put(f"noise floor {_figure(floor)}; excess is what the last tenth's error is above it")
    for line in _constants(receipt["run"]["learners"]):
        output.put(line)
    for line in output.table(list(_rows(run, floor))):
        output.put(line)
    if run.path is not None:
        output.put(run.path)


def _rows(run: Any, floor: float | None) -> Iterator[tuple[str, ...]]:
    learners, targets = run.receipt["run"]["learners"], {member["target"] for member in run.members}
    varied = _varied(learners)
    head = ["learner", *varied, *(["target"] if len(targets) > 1 else []), "error", "last tenth"]
    yield (*head, *(["excess"] if floor is not None else []), "step-size", "ten windows")
    bars = _Bars([error for member in run.members for error in (member["results"] or {}).get("tenths", [])])
    for place in run.ranked:
        member = run.members[place]
        values = _flat(learners[member["learner"]])
        row = [_name(learners[member["learner"]]), *(_shown(values.get(name)) for name in varied)]
        row += [str(member["target"])] if len(targets) > 1 else []
        found = member["results"]
        if found is None:
            lost = f"left the finite numbers at step {numbers.with_commas(member['stopped_at'])}"
            yield (*row, *("–" for _ in range(3 + (floor is not None))), lost)
            continue
        row += [_figure(found["mean_squared_error"]), _figure(found["last_tenth"])]
        if floor is not None:
            row.append(_figure(None if found["last_tenth"] is None else found["last_tenth"] - floor))
        yield (*row, _figure(found["mean_step_size"]), bars.line(found["tenths"]))


class _Bars:
    """Errors as bars, on one logarithmic scale for all members."""

    def __init__(self, errors: Sequence[float | None]):
        logs = [math.log(error) for error in errors if error]
        self._low, self._high = (min(logs), max(logs)) if logs else (0.0, 0.0)
        self._bars = next(bars for bars in _BARS if output.can_show(bars))

    def line(self, errors: Sequence[float | None]) -> str:
        return "".join(map(self._bar, errors))

    def _bar(self, error: float | None) -> str:
        if error is None:
            return _NOT_FINITE
        width = self._high - self._low
        share = (math.log(error) - self._low) / width if error and width else 0.0
        return self._bars[min(int(share * len(self._bars)), len(self._bars) - 1)]


def _name(learner: Any) -> str:
    normalizer = learner["normalizer"]
    return learner["optimizer"]["type"] + ("" if normalizer is None else f" + {normalizer['type']}")


def _flat(learner: Any) -> dict[str, float]:
    """Return the parameters of a learner, optimizer and normaliser together."""
    found = {**(learner["normalizer"] or {}), **learner["optimizer"]}
    return {name: value for name, value in found.items() if name != "type"}


def _varied(learners: Sequence[Any]) -> list[str]:
    """Return the parameters in which two learners that have them differ."""
    values: dict[str, set[float]] = {}
    for learner in learners:
        for name, value in _flat(learner).items():
            values.setdefault(name, set()).add(value)
    return [name for name, found in values.items() if len(found) > 1]


def _constants(learners: Sequence[Any]) -> Iterator[str]:
    """Yield what a kind of learner has in common: `autostep: tau 10000`."""
    varied, told = _varied(learners), set()
    for learner in learners:
        same = ", ".join(f"{name} {_shown(value)}" for name, value in _flat(learner).items() if name not in varied)
        if same and _name(learner) not in told:
            told.add(_name(learner))
            yield f"{_name(learner)}: {same}"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
