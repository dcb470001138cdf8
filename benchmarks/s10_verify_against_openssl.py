"""S10: `verify` of thirty million steps against `openssl dgst -sha256` of the same files, from the page cache."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from benchmarks.measuring import COMMAND, Bench, Row, power

GOAL = "S10"
STEPS = 30_000_000


def rows(bench: Bench) -> Iterator[Row]:
    if shutil.which("openssl") is None:
        return
    steps = bench.count(STEPS, 2_000, small=10_000_000)
    dataset = bench.dataset("abrupt", steps)
    files = sorted(str(path) for path in dataset.rglob("*") if path.is_file())
    ours, theirs = bench.in_turn(
        lambda: bench.process([*COMMAND, "verify", "-q", str(dataset)]),
        lambda: bench.process(["openssl", "dgst", "-sha256", *files]),
    )
    shutil.rmtree(dataset)
    yield Row(
        GOAL,
        f"`verify` of {power(steps)} steps, whole process",
        "`openssl dgst -sha256` of the same files, page cache",
        ours.wall,
        theirs.wall,
        0.9,
        cpu=(ours.cpu, theirs.cpu),
    )
