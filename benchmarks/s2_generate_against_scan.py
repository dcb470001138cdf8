"""S2: every stream in memory at its defaults, against `lax.scan` over its published formulas under default flags.

Both make observations and targets of seed 0. Where the scan takes microseconds a step it is given fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measuring import JAX, Bench, Row, per

GOAL = "S2"
OLD = JAX < (0, 11)
OURS = 2**20
THEIRS = 2**14 if OLD else 2**18
GOALS = {
    "random-walk": 30, "abrupt": 30, "cyclic": 30, "periodic": 30, "scale-drift": 20, "dynamic-scale-shift": 20,
    "sutton1": 12,
}  # fmt: skip
NEWER = 3.5


def ours(name: str, steps: int) -> Callable[[], None]:
    from alberta_data import generation, xla
    from alberta_data.streams.registry import STREAMS

    xla.pin()
    stream = STREAMS[name]() if name == "sutton1" else STREAMS[name](feature_dim=20)

    def run() -> None:
        for _ in generation.blocks(stream, 0, steps):
            pass

    return run


def theirs(name: str, steps: int) -> Any:
    from benchmarks.published_streams import scanned

    return scanned(name, steps)


def rows(bench: Bench) -> Iterator[Row]:
    mine, other = bench.count(OURS, 500), bench.count(THEIRS, 500)
    for name, goal in GOALS.items():
        with bench.worker(ours, name=name, steps=mine) as fast, bench.worker(theirs, name=name, steps=other) as slow:
            a, b = bench.in_turn(fast, slow)
        a, b = per(a, mine), per(b, other)
        yield Row(
            GOAL,
            f"{name} in memory, per step",
            "`lax.scan` over the published formulas, default flags",
            a.wall,
            b.wall,
            goal if OLD else NEWER,
            faster=True,
            unit="µs",
            scale=1e6,
            cpu=(a.cpu, b.cpu),
        )
