"""Makes the recipes of the standard suite: `python datasets/recipes/make.py [most steps]`.

Every stream at its defaults (20 features where it has none), and the Sutton experiments, 1e5, 1e6 and 1e7 steps, seeds
0, 1 and 2. A recipe that is there already and still gives its id is left as it is; one that does not is an error.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alberta_data.dataset import create_dataset, dataset_name
from alberta_data.share import read_recipe, recipe
from alberta_data.streams.registry import STREAMS

FOLDER = Path(__file__).parent
STEPS = (100_000, 1_000_000, 10_000_000)
SEEDS = (0, 1, 2)
FEATURES = 20
"""Features of a stream that has no default of its own: the command line's."""
# Experiment 1 of Sutton (1992): 5 inputs that matter among 20, as published, and without the 15 that do not.
SUTTON = ({}, {"num_irrelevant": 0})


def streams() -> Iterator[Any]:
    """Yield the streams of the suite."""
    for name, stream in STREAMS.items():
        if name == "sutton1":
            yield from (stream(**parameters) for parameters in SUTTON)
        else:
            yield stream(feature_dim=FEATURES)


def suite(most_steps: int = max(STEPS)) -> Iterator[tuple[str, Any, int, int]]:
    """Yield file name, stream, steps and seed of every recipe up to a length."""
    for steps in (steps for steps in STEPS if steps <= most_steps):
        for stream in streams():
            for seed in SEEDS:
                yield f"{dataset_name(stream, steps, seed).removesuffix('.zarr')}.recipe.json", stream, steps, seed


def main() -> int:
    """Make the datasets, one after another, and write what is missing."""
    wrong = []
    for name, stream, steps, seed in suite(int(float(sys.argv[1])) if len(sys.argv) > 1 else max(STEPS)):
        with (
            tempfile.TemporaryDirectory() as folder,
            create_dataset(stream, steps=steps, seed=seed, path=Path(folder) / "d.zarr") as made,
        ):
            text, found = recipe(made), made.id
        path = FOLDER / name
        if not path.exists():
            path.write_text(f"{text}\n", encoding="utf-8")
        elif read_recipe(path)["id"] != found:
            wrong.append(name)
        print(name, found[:8], flush=True)
    for name in wrong:
        print(f"{name} must have the id that is made now, got another: raise the stream's version", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
