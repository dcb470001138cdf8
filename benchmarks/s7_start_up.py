"""S7: `alberta-data --help` against an interpreter that does nothing; a small `generate` against one that has jax."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.measuring import COMMAND, Bench, Row, Time

GOAL = "S7"
ROUNDS = 15
"""More than five, since each takes a moment only."""


def rows(bench: Bench) -> Iterator[Row]:
    ours, theirs = replace(bench, rounds=ROUNDS).in_turn(
        lambda: bench.process([*COMMAND, "--help"]), lambda: bench.process([sys.executable, "-c", "pass"])
    )
    yield _row("`alberta-data --help`", "`python -c pass`", ours, theirs, 8)
    made = bench.folder / "s7.zarr"

    def generate() -> Time:
        taken = bench.process([*COMMAND, "generate", "abrupt", "--steps", "1e3", "-q", "-o", str(made)])
        shutil.rmtree(made)
        return taken

    starts_jax = [sys.executable, "-c", "import jax; jax.numpy.zeros(1)"]
    ours, theirs = bench.in_turn(generate, lambda: bench.process(starts_jax))
    yield _row(
        "`generate abrupt --steps 1e3`, compiled before",
        "`python -c 'import jax; jax.numpy.zeros(1)'`",
        ours,
        theirs,
        1.5,
    )


def _row(work: str, against: str, ours: Time, theirs: Time, goal: float) -> Row:
    return Row(
        GOAL, work, against, ours.wall, theirs.wall, goal, unit="ms", scale=1e3, cpu=(ours.cpu, theirs.cpu)
    )  # fmt: skip
