"""S6: peak memory of `generate`, `verify` and `learn` at 1e8 steps against 1e6; and of wide rows against the formula.

The peak is the process's as the system tells it at its end (`ru_maxrss`), once each. A hundred million steps are 8.4
GB on disk; where the disk lacks the room, or with `--small`, ten million are taken.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import COMMAND, Bench, Row, power

GOAL = "S6"
MANY, FEWER, FEW = 100_000_000, 10_000_000, 1_000_000
ROOM = 12 * 10**9
MIB, GIB = 2**20, 2**30
LIMIT = 1.0
"""GiB that none may pass."""
WIDE = {1: 10_000_000, 10_000: 20_000}
"""Features → steps: 80 and 800 MB."""


def bound(work: str, features: int, started: int) -> int:
    """Return the bytes that the formula of docs/performance.md allows."""
    row = 4 * (features + 1)
    block = min(2**16, 2 ** (8 * MIB // row).bit_length() // 2) * row
    if work == "generate":
        return started + 150 * MIB + 10 * block
    if work == "verify":
        return 100 * MIB
    return started + 150 * MIB + 8 * max(min(2**16 * row, 32 * MIB), row)


def peaks(bench: Bench, steps: int, features: int = 20) -> dict[str, int]:
    """Return the bytes of memory that each command takes at most over a dataset of so many steps."""
    made, run = bench.folder / "s6.zarr", bench.folder / "s6-run"
    options = ["--steps", str(steps), "--feature-dim", str(features), "-q"]
    try:
        return {
            "generate": bench.process([*COMMAND, "generate", "abrupt", *options, "-o", str(made)]).peak,
            "verify": bench.process([*COMMAND, "verify", "-q", str(made)]).peak,
            "learn": bench.process(
                [*COMMAND, "learn", str(made), "--optimizer", "autostep", "-q", "-o", str(run)]
            ).peak,
        }
    finally:
        for path in (made, run):
            shutil.rmtree(path, ignore_errors=True)


def rows(bench: Bench) -> Iterator[Row]:
    many, few = _counts(bench)
    small, large = peaks(bench, few), peaks(bench, many)
    for work in large:
        yield _row(f"`{work}` at {power(many)} steps, peak memory", f"at {power(few)}", large[work], small[work], 1.1)
    started = bench.process([sys.executable, "-c", "import jax; jax.numpy.zeros(1)"]).peak
    for features, full in list(WIDE.items())[: 1 if bench.tiny else None]:
        steps = bench.count(full, 20)
        for work, peak in peaks(bench, steps, features).items():
            name = f"`{work}` of {features:,} feature{'s' * (features > 1)}, {power(steps)} steps"
            yield _row(name, "the formula", peak, bound(work, features, started), 1.0)


def _counts(bench: Bench) -> tuple[int, int]:
    many, few = bench.count(MANY, 2_000, small=FEWER), bench.count(FEW, 1_000)
    if many == MANY and shutil.disk_usage(Path(bench.folder)).free < ROOM:
        print(f"S6: {ROOM // 10**9} GB must be free for 1e8 steps, taking 1e7 instead", file=sys.stderr)
        many = FEWER
    return many, few


def _row(work: str, against: str, ours: int, theirs: int, goal: float) -> Row:
    return Row(GOAL, work, against, ours, theirs, goal, unit="GiB", scale=1 / GIB, limit=LIMIT)
