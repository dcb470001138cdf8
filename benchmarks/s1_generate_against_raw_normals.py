"""S1: ten million steps of `abrupt`, frozen, against a script that only draws as many normals and writes them.

The script makes one number for every one stored (20 features and a target), in the batches that suit `jax.random`
best, and writes their bytes into one file: no drift, no target, no hash, no sync, no metadata.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import COMMAND, Bench, Row, Time, power

GOAL = "S1"
STEPS = 10_000_000
NUMBERS = 21
BLOCK = 2**17


def raw_normals(path: str, steps: int) -> None:
    import jax
    import numpy as np

    key = jax.random.key(0)
    with open(path, "wb") as file:
        for first in range(0, steps, BLOCK):
            key, block_key = jax.random.split(key)
            numbers = np.asarray(jax.random.normal(block_key, (BLOCK, NUMBERS)))
            file.write(numbers[: steps - first].data)


def rows(bench: Bench) -> Iterator[Row]:
    steps = bench.count(STEPS, 2_000)
    dataset, raw = bench.folder / "s1.zarr", bench.folder / "s1.raw"

    def fresh(command: list[str], made: Path) -> Time:
        # What the one before has left to be written would be synced by the other.
        os.sync()
        taken = bench.process(command)
        shutil.rmtree(made) if made.is_dir() else made.unlink()
        return taken

    ours, theirs = bench.in_turn(
        lambda: fresh([*COMMAND, "generate", "abrupt", "--steps", str(steps), "-q", "-o", str(dataset)], dataset),
        lambda: fresh([sys.executable, "-m", __name__, str(raw), str(steps)], raw),
    )
    yield Row(
        GOAL,
        f"`generate abrupt --steps {power(steps)}`, whole process, frozen, every digest",
        "a script that draws as many normals in blocks of 2^17 steps and writes them: no hash, no sync",
        ours.wall,
        theirs.wall,
        0.7,
        cpu=(ours.cpu, theirs.cpu),
    )  # fmt: skip


if __name__ == "__main__":
    raw_normals(sys.argv[1], int(sys.argv[2]))
