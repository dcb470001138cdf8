"""S5: a grid of 32 learners in one pass over a dataset, against one learner; `learn` in its steady state."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.learning import from_disk
from benchmarks.measuring import Bench, Row

GOAL = "S5"
STEPS = 1_000_000
MEMBERS = 32


def rows(bench: Bench) -> Iterator[Row]:
    dataset, run = str(bench.dataset("abrupt", bench.count(STEPS, 140_000))), str(bench.folder / "run")
    with (
        bench.worker(from_disk, dataset=dataset, run=run, optimizer="autostep", members=MEMBERS) as grid,
        bench.worker(from_disk, dataset=dataset, run=f"{run}-1", optimizer="autostep") as one,
    ):
        ours, theirs = bench.in_turn(grid, one)
    yield Row(
        GOAL,
        f"{MEMBERS} members (Autostep) in one pass from disk, per step",
        "one",
        ours.wall,
        theirs.wall,
        6,
        unit="µs",
        scale=1e6,
        cpu=(ours.cpu, theirs.cpu),
    )
