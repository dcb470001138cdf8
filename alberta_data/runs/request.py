"""What a run is asked to do: what its receipt keeps, what names its folder, what a checkpoint is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError
from alberta_data.learners import LinearLearner, learner_from_json
from alberta_data.replay.collect import is_own
from alberta_data.replay.fold import check_gamma
from alberta_data.replay.groups import NOT_TRACKED, Tracking
from alberta_data.replay.windows import edges_every, even_edges
from alberta_data.store import canonical

MEMBERS_A_PASS = 2048
"""Most members that one pass over the data carries: their windows then take about 100 MB."""
WINDOWS = 1000
"""Windows of a run, as even as can be."""
MOST_WINDOWS, MOST_MEMBER_WINDOWS = 1 << 20, 1 << 22
"""Most windows of a length of one's own, and of all members together: about 500 MB."""
BLOCK_BYTES = 32 << 20
"""Most bytes that the metrics of one block take."""


@dataclass(frozen=True)
class Request:
    """A run before it begins.

    Attributes:
        dataset_id: of the dataset.
        start: first step.
        steps: how many.
        learners: the grid.
        columns: the target columns; every learner is a member for each.
        gamma: the discount of TD on stored transitions; None for plain targets.
        tracking: intervals of the histories.
        after: the digest of the run whose states this one goes on from; None to begin.
        replayed: mode and features of an environment's dataset where they are not those of its spec.
        every: steps of a window of the curves; None for 1,000 even windows.
    """

    dataset_id: str
    start: int
    steps: int
    learners: tuple[LinearLearner, ...]
    columns: tuple[int, ...]
    gamma: float | None = None
    tracking: Tracking = NOT_TRACKED
    after: str | None = None
    replayed: Mapping[str, Any] | None = None
    every: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in a receipt. What is usual is left out, so that it changes no digest."""
        entries: dict[str, Any] = {
            "dataset": self.dataset_id,
            "range": [self.start, self.steps],
            "learners": [learner.to_json() for learner in self.learners],
        }
        if self.columns != (0,):
            entries["target_columns"] = list(self.columns)
        if self.gamma is not None:
            entries["td"] = {"gamma": self.gamma}
        if any(self.tracking):
            entries["tracking"] = {"step_sizes": self.tracking.step_sizes, "normalizer": self.tracking.scales}
        if self.after is not None:
            entries["after"] = self.after
        if self.replayed is not None:
            entries["replayed"] = dict(self.replayed)
        if self.every is not None:
            entries["every"] = self.every
        return entries

    @classmethod
    def from_json(cls, entries: Any) -> Request:
        """Return the request that `to_json` described.

        Raises:
            ArgumentError: it did not.
        """
        try:
            tracking = entries.get("tracking", {"step_sizes": 0, "normalizer": 0})
            found = cls(
                str(entries["dataset"]),
                int(entries["range"][0]),
                int(entries["range"][1]),
                tuple(map(learner_from_json, entries["learners"])),
                tuple(map(int, entries.get("target_columns", (0,)))),
                float(entries["td"]["gamma"]) if "td" in entries else None,
                Tracking(int(tracking["step_sizes"]), int(tracking["normalizer"])),
                entries.get("after"),
                entries.get("replayed"),
                int(entries["every"]) if "every" in entries else None,
            )
        except ArgumentError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise ArgumentError("a receipt must say dataset, range and learners, got another document") from None
        if found.to_json() != entries:
            raise ArgumentError("a receipt must say dataset, range and learners, got further entries")
        return found

    def check(self, dataset: Any) -> None:
        """Check the request against a dataset.

        Raises:
            ArgumentError: an empty grid, learners of another kind, a range or columns that the dataset does not have, a
                discount or an interval out of range, arrays that are missing.
        """
        if self.replayed != getattr(dataset, "replayed", None):
            raise ArgumentError(f"the run was learned from {self.replayed}, got {getattr(dataset, 'replayed', None)}")
        if not self.learners:
            raise ArgumentError("learners must be at least one, got an empty grid")
        for learner in self.learners:
            if not is_own(learner):
                raise ArgumentError(
                    f"a run needs learners of this package, got {type(learner).__name__}: "
                    "learn_from_trajectory takes any"
                )
        if self.start < 0 or self.steps < 1 or self.start + self.steps > dataset.steps:
            raise ArgumentError(
                f"the range must lie within the dataset's {dataset.steps} steps, got {self.steps} from {self.start}"
            )
        check_gamma(self.gamma)
        if min(self.tracking) < 0 or max(self.tracking) > self.steps:
            raise ArgumentError(f"interval must be >= 1 and <= the steps ({self.steps}), got {tuple(self.tracking)}")
        self._check_windows()
        width = _width(dataset, self.gamma is not None)
        if not self.columns or not 0 <= min(self.columns) <= max(self.columns) < width:
            raise ArgumentError(
                f"target must be a column from 0 to {width - 1}, got {', '.join(map(str, self.columns))}"
            )

    def _check_windows(self) -> None:
        if self.every is None:
            return
        if self.every < 1:
            raise ArgumentError(f"every must be at least 1 step, got {self.every}")
        windows, members = -(-self.steps // self.every), len(self.members)
        most = min(MOST_WINDOWS, max(WINDOWS, MOST_MEMBER_WINDOWS // members))
        if windows > most:
            raise ArgumentError(
                f"every must leave at most {most} windows of {members} members, got {windows}: take "
                f"{-(-self.steps // most)} steps or more, or metrics full"
            )

    @property
    def edges(self) -> np.ndarray:
        """The edges of the windows that the members' figures are made of, from 0."""
        return even_edges(self.steps, WINDOWS)

    @property
    def curve_edges(self) -> np.ndarray | None:
        """The edges of the curves' windows where they are others, from 0; else None."""
        return None if self.every is None else edges_every(self.steps, self.every)

    @property
    def windows(self) -> int:
        """How many windows the curves have."""
        return min(self.steps, WINDOWS) if self.every is None else -(-self.steps // self.every)

    @property
    def digits(self) -> str:
        """8 digits of the digest of all of it: the end of the folder's name."""
        return canonical.digest(self.to_json())[:8]

    @property
    def members(self) -> list[tuple[int, int]]:
        """The members: place of the learner and target column, the columns of a learner following each other."""
        return [(place, column) for place in range(len(self.learners)) for column in self.columns]

    @property
    def passes(self) -> list[range]:
        """The learners of each pass over the data, by place."""
        size = max(1, MEMBERS_A_PASS // len(self.columns))
        return [range(first, min(first + size, len(self.learners))) for first in range(0, len(self.learners), size)]

    @property
    def block_steps(self) -> int:
        """Steps of a block that keep the metrics of one within `BLOCK_BYTES`: a power of two, at most 2^16."""
        members = len(self.passes[0]) * len(self.columns)
        return 1 << min(16, (BLOCK_BYTES // (16 * members)).bit_length() - 1)


def _width(dataset: Any, td: bool) -> int:
    """Return how many target columns there are to learn.

    Raises:
        ArgumentError: an array that learning needs is missing, or observations are no rows of features.
    """
    needed = ("next_observations", "rewards", "terminated") if td else ("targets",)
    missing = [name for name in ("observations", *needed) if name not in dataset.arrays]
    if missing:
        raise ArgumentError(f"learning needs {', '.join(missing)}, but the dataset has {', '.join(dataset.arrays)}")
    shape = dataset.arrays["observations"].shape
    if len(shape) != 2:
        raise ArgumentError(f"observations must be one row of features a step, got {shape}")
    return 1 if td else (*dataset.arrays["targets"].shape, 1)[1]


def target_columns(dataset: Any, target: int | str | None, td: bool) -> tuple[int, ...]:
    """Return the columns that `target` asks for: all of them for None, or one, by number or by name.

    Raises:
        ArgumentError: no such name; see also `Request.check`.
    """
    width = _width(dataset, td)
    if target is None or td:
        return tuple(range(width))
    names = list(dataset.target_columns or [])
    if isinstance(target, str) and target in names:
        return (names.index(target),)
    if isinstance(target, str) and not target.isdecimal():
        raise ArgumentError(f"target must be one of {', '.join(names) or f'0 to {width - 1}'}, got {target!r:.80}")
    return (int(target) if isinstance(target, str) else whole("target", target),)


def whole(name: str, value: Any) -> int:
    """Return a whole number as an int; `1000.0` is one.

    Raises:
        ArgumentError: another value.
    """
    try:
        if not isinstance(value, bool) and (found := int(value)) == value:
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{name} must be a whole number, got {value!r:.80}")


def default_path(dataset: Any, request: Request) -> Path:
    """Return where a run goes if not told: `runs/<dataset>-<8 digits>`."""
    name = Path(getattr(dataset, "path", None) or dataset.id[:8]).name
    for suffix in (".zip", ".zarr"):
        name = name.removesuffix(suffix)
    return Path("runs") / f"{name}-{request.digits}"
