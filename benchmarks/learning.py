"""`learn` as it runs, timed in its steady state: from the end of its first block to the end of its last."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measuring import Time


def learners(optimizer: str, members: int) -> list[Any]:
    """Return learners of one kind, each with parameters of its own; IDBD's are those that stay finite for long."""
    from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner

    made = {
        "lms": lambda scale: LMS(0.01 * scale),
        "idbd": lambda scale: IDBD(0.01, 0.001 * scale),
        "autostep": lambda scale: Autostep(0.01, 0.01 * scale),
    }[optimizer]
    return [LinearLearner(made(1 - member / 64)) for member in range(members)]


class Ticks:
    """The first and the last call of a `progress`, and the time between them."""

    def __init__(self) -> None:
        self._first: tuple[int, float, float] | None = None
        self._last = (0, 0.0, 0.0)

    def __call__(self, done: int, of: int | None = None) -> None:
        """Note that `done` steps are done."""
        self._last = (done, time.perf_counter(), time.process_time())
        self._first = self._first or self._last

    def per_step(self) -> Time:
        """Return the time of a step between the two."""
        assert self._first is not None
        steps, wall, cpu = (last - first for first, last in zip(self._first, self._last, strict=True))
        return Time(wall / steps, cpu / steps)


def from_disk(dataset: str, run: str, optimizer: str, members: int = 1) -> Callable[[], Time]:
    """Return `learn` over a dataset, the run removed again."""
    from alberta_data import open_dataset, xla
    from alberta_data.runs import learn

    xla.pin()

    def once() -> Time:
        ticks = Ticks()
        with open_dataset(dataset) as opened:
            learn(opened, learners(optimizer, members), path=Path(run), progress=ticks)
        shutil.rmtree(run)
        return ticks.per_step()

    return once
