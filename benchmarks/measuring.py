"""Two things in turn, medians of five: how every ratio here is measured.

Nothing is timed in this process, which imports neither jax nor the package: commands run whole, functions in workers
(see `worker`). Default flags are no `XLA_FLAGS` at all; the package sets its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).parents[1]
JAX = tuple(int(part) for part in version("jax").split(".")[:2])
"""The release of jax, as (0, 12)."""


class Time(NamedTuple):
    """Seconds, and bytes of memory where they were looked at.

    Attributes:
        wall: that went by.
        cpu: that all threads spent together.
        peak: the most memory of the process, bytes.
    """

    wall: float
    cpu: float
    peak: int = 0


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        goal_id: S1 … S10.
        work: what is ours.
        against: what it is measured against.
        ours: of the work.
        theirs: of the other.
        goal: the ratio to reach; None where there is none for this release.
        faster: the ratio is theirs by ours and is to be at least the goal; else ours by theirs, at most the goal.
        unit: of `ours` and `theirs`, as it is printed.
        scale: units in one of `ours`.
        limit: what `ours` must not pass as well, in the unit.
        cpu: CPU seconds of both, in the same measure.
    """

    goal_id: str
    work: str
    against: str
    ours: float
    theirs: float
    goal: float | None
    faster: bool = False
    unit: str = "s"
    scale: float = 1.0
    limit: float | None = None
    cpu: tuple[float, float] | None = None

    @property
    def ratio(self) -> float:
        """What the goal speaks of."""
        return self.theirs / self.ours if self.faster else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        within = self.limit is None or self.ours * self.scale <= self.limit
        return within and (self.ratio >= self.goal if self.faster else self.ratio <= self.goal)

    def cells(self) -> list[str]:
        """Return the texts of the table's columns, `COLUMNS`."""
        mine, other = (self._shown(place) for place in (0, 1))
        goal = "–" if self.goal is None else f"{self.goal:g}×" if self.faster else f"{self.goal:g}"
        if self.limit is not None:
            goal += f", {self.limit:g} {self.unit}"
        said = {None: "–", True: "yes", False: "no"}[self.met]
        return [
            self.goal_id, self.work, self.against, mine, other, f"{number(self.ratio)}{'×' * self.faster}", goal, said
        ]  # fmt: skip

    def _shown(self, place: int) -> str:
        text = f"{number((self.ours, self.theirs)[place] * self.scale)} {self.unit}"
        return text if self.cpu is None else f"{text} ({number(self.cpu[place] * self.scale)} CPU)"


COLUMNS = ("id", "what", "against", "what took", "the other took", "ratio", "goal", "met")


def number(value: float) -> str:
    """Return a number with three digits that mean something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def power(steps: int) -> str:
    """Return a number of steps as it is given on the command line: `3e7`, `2000`."""
    short = f"{steps:.0e}".replace("e+0", "e").replace("e+", "e")
    return short if int(float(short)) == steps else str(steps)


@dataclass(frozen=True)
class Bench:
    """What a benchmark is given.

    Attributes:
        folder: an empty one on a disk, for datasets, runs and the compiler's cache.
        tiny: a size at which every number is meaningless, to see that all runs.
        small: leave out what takes minutes.
        rounds: measurements of each of two things.
    """

    folder: Path
    tiny: bool = False
    small: bool = False
    rounds: int = 5

    def count(self, full: int, tiny: int, small: int | None = None) -> int:
        """Return how many steps to take."""
        if self.tiny:
            return tiny
        return small if self.small and small is not None else full

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every child: no flags of jax's or XLA's, a cache of its own."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("XLA_", "JAX_", "ALBERTA_"))}
        return {**kept, "ALBERTA_DATA_CACHE": str(self.folder / "cache")}

    def dataset(self, stream: str, steps: int, *options: str) -> Path:
        """Return a dataset of a stream, made where it is not there yet."""
        path = self.folder / "-".join([stream, str(steps), *(word.strip("-") for word in options)])
        path = path.with_name(f"{path.name}.zarr")
        if not path.exists():
            self.process([*COMMAND, "generate", stream, "--steps", str(steps), *options, "-q", "-o", str(path)])
        return path

    def process(self, command: Sequence[str]) -> Time:
        """Run a whole process and return what it took.

        Raises:
            RuntimeError: it failed.
        """
        start = time.perf_counter()
        with subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            assert child.stderr is not None
            said = child.stderr.read()
            _, status, used = os.wait4(child.pid, 0)
            wall = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {said.decode(errors='replace')}")
        return Time(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)

    def worker(self, function: Callable[..., Any], **arguments: Any) -> Worker | Inside:
        """Return a process that times what `function(**arguments)` returns, whenever it is called."""
        if self.tiny:
            return Inside(function, arguments)
        return Worker(self, place_of(function), arguments)

    def in_turn(self, ours: Callable[[], Time], theirs: Callable[[], Time]) -> tuple[Time, Time]:
        """Return the medians of both, run in turn after a warm-up of each."""
        taken: tuple[list[Time], list[Time]] = ([], [])
        for round_ in range(1 if self.tiny else 1 + self.rounds):
            for run, times in zip((ours, theirs), taken, strict=True):
                one = run()
                if round_ or self.tiny:
                    times.append(one)
        return medians(taken[0]), medians(taken[1])


def medians(times: Sequence[Time]) -> Time:
    """Return the median of each entry."""
    return Time(*(median(column) for column in zip(*times, strict=True)))


def _command() -> list[str]:
    script = Path(sys.executable).with_name("alberta-data")
    return [str(script)] if script.exists() else [sys.executable, "-m", "alberta_data"]


COMMAND = _command()
"""The command line, as a person runs it."""


def place_of(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which another process finds a function, also one of the module that is being run."""
    module = function.__module__
    if module == "__main__":
        module = sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]
    return f"{module}:{function.__name__}"


@dataclass
class Worker:
    """A process that has imported a function, and times a run each time it is called; see `worker`."""

    bench: Bench
    place: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Start the process."""
        command = [sys.executable, "-m", "benchmarks.worker", self.place, json.dumps(self.arguments)]
        self._child = subprocess.Popen(
            command, cwd=ROOT, env=self.bench.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __call__(self) -> Time:
        """Run once and return what it took.

        Raises:
            RuntimeError: it failed; the process has said how on standard error.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.place} with {dict(self.arguments)} failed")
        return Time(*json.loads(line))

    def __exit__(self, *_: object) -> None:
        """End the process."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()


@dataclass
class Inside:
    """What stands for a `Worker` where its numbers mean nothing: the same calls, in this process."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    def __enter__(self) -> Self:
        """Prepare the function."""
        self._run = self.function(**self.arguments)
        return self

    def __call__(self) -> Time:
        """Run once and return what it took."""
        return timed(self._run)

    def __exit__(self, *_: object) -> None:
        """Nothing is to be ended."""


def timed(run: Callable[[], Any]) -> Time:
    """Return what a call took, or what it says it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    said = run()
    found = Time(time.perf_counter() - wall, time.process_time() - cpu)
    return said if isinstance(said, Time) else found


def per(times: Time, steps: int) -> Time:
    """Return the time of one of `steps`."""
    return Time(times.wall / steps, times.cpu / steps, times.peak)
