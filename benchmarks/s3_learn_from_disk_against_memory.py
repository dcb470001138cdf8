"""S3: learning from disk, every row checked and every metric tallied, against the same loop on arrays in memory.

The loop on arrays has the same blocks and keeps nothing of the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.learning import Ticks, from_disk, learners
from benchmarks.measuring import Bench, Row, Time

GOAL = "S3"
STEPS = 5_000_000
BLOCK = 65_536


def in_memory(dataset: str, optimizer: str) -> Callable[[], Time]:
    from alberta_data import open_dataset, xla
    from alberta_data.blocks import Block
    from alberta_data.replay import Fold

    xla.pin()
    with open_dataset(dataset) as opened:
        arrays = {name: opened.arrays[name][:] for name in ("observations", "targets")}
    steps = len(arrays["targets"])

    def once() -> Time:
        ticks = Ticks()
        with Fold(learners(optimizer, 1), arrays["observations"].shape[1]) as fold:
            for start in range(0, steps, BLOCK):
                fold.advance(Block(start, {name: array[start : start + BLOCK] for name, array in arrays.items()}))
                ticks(min(start + BLOCK, steps))
        return ticks.per_step()

    return once


def rows(bench: Bench) -> Iterator[Row]:
    dataset = str(bench.dataset("abrupt", bench.count(STEPS, 140_000)))
    with (
        bench.worker(from_disk, dataset=dataset, run=str(bench.folder / "run"), optimizer="autostep") as disk,
        bench.worker(in_memory, dataset=dataset, optimizer="autostep") as memory,
    ):
        ours, theirs = bench.in_turn(disk, memory)
    yield Row(
        GOAL,
        "`learn --optimizer autostep` from disk, steady state, per step",
        "the same loop on arrays in memory",
        ours.wall,
        theirs.wall,
        1.15,
        unit="µs",
        scale=1e6,
        cpu=(ours.cpu, theirs.cpu),
    )
