"""Prepared datasets: rows that follow from their step, so that any part can be made again."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.store import ArrayDeclaration, Writer

MADE_WITH = {"python": "3", "cpu": "x86_64"}


@dataclass(frozen=True)
class Recipe:
    """A prepared dataset."""

    steps: int = 2000
    chunk_steps: int | None = 250
    codec: str | None = None
    block: int = 333
    episode: int = 0
    keeps: bool = True
    seed: int = 0
    arrays: tuple[ArrayDeclaration, ...] = field(
        default=(
            ArrayDeclaration("observations", "float32", (3,)),
            ArrayDeclaration("targets", "float32", (1,)),
            ArrayDeclaration("rewards", "float64", ()),
        )
    )

    @property
    def spec(self):
        parameters = {"scale": 0.5, "episode": self.episode}
        entries = {"kind": "stream", "stream": "prepared", "version": 1, "parameters": parameters}
        return {**entries, "prng": "threefry2x32/partitionable", "seed": self.seed, "steps": self.steps}

    @property
    def declarations(self):
        last = ArrayDeclaration("final_observations", "float32", (3,), by_step=False)
        return (*self.arrays, last) if self.episode else self.arrays

    def state(self, step):
        if not self.keeps:
            return {}
        return {"key": np.array([self.seed, step], np.uint32), "inner/weights": np.full(3, step, np.float32)}

    def rows(self, array, start, stop):
        """Rows of an array by the step alone."""
        width = int(np.prod(array.row_shape, dtype=int))
        at = np.arange(start, stop, dtype=np.uint64)[:, None] * np.uint64(width) + np.arange(width, dtype=np.uint64)
        mixed = (at + np.uint64(1 + self.seed + zlib.crc32(array.name.encode()))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        if np.dtype(array.dtype).kind == "f":
            mixed = mixed >> np.uint64(54 if array.dtype == "float16" else 44)
        return mixed.astype(array.dtype).reshape(stop - start, *array.row_shape)

    def final(self, start, stop):
        """The last observations of the episodes that end in these steps; the dataset's end cuts one too."""
        if not self.episode:
            return {}
        ends = [n for n in range(start + 1, stop + 1) if n % self.episode == 0 or n == self.steps]
        return {"final_observations": np.array([[n, -n, 0.5] for n in ends], np.float32).reshape(len(ends), 3)}

    def blocks(self, start=0):
        while start < self.steps:
            ends = (start + self.block, start - start % CHECKPOINT_STEPS + CHECKPOINT_STEPS, self.steps)
            stop = min(ends)
            yield Block(start, {a.name: self.rows(a, start, stop) for a in self.arrays})
            start = stop

    def begin(self, path, **options):
        given = {"chunk_steps": self.chunk_steps, "codec": self.codec, "checkpoint_state": self.state(0), **options}
        return Writer.begin(path, self.spec, MADE_WITH, self.declarations, **given)

    def append_all(self, writer, stop=None):
        for block in self.blocks(writer.position.step):
            if stop is not None and block.start >= stop:
                return
            writer.append(block, self.state(block.stop), self.final(block.start, block.stop))

    def write(self, path: Path, **options):
        """Write it, or go on with it, and return the root."""
        with self.begin(path, **options) as writer:
            self.append_all(writer)
            writer.finish({"title": "prepared"})
            return writer.root

    def but(self, **changes):
        return replace(self, **changes)


FLAGS = ArrayDeclaration("flags", "uint8", ())
SMALL = Recipe(episode=70)
PACKED = Recipe(steps=900, chunk_steps=256, codec="fast", block=100)
# More than one leaf and one checkpoint, and leaves that end inside chunks.
LEAFY = Recipe(steps=300_000, chunk_steps=40_000, block=50_000, arrays=(FLAGS,))
# Chunks and leaves of powers of two.
EVEN = Recipe(steps=200_000, chunk_steps=2**16, block=2**17, arrays=(FLAGS,))
TINY = Recipe(steps=20, chunk_steps=10, block=20)
BARE = TINY.but(arrays=(FLAGS,), keeps=False)
