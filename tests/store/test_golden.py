"""T16: golden datasets of every released format are read for ever, under the same id."""

from pathlib import Path

import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.store import ArrayDeclaration, Writer, open_store

GOLDEN = Path(__file__).parents[1] / "data/golden"
# Never to be changed: a new format adds its own.
IDS = {
    "format1-none": "437746da62f6dcc5c4f84e8be0d6a8b8743548cc149b15c8547e9fc0f20b5408",
    "format1-fast": "9ca16ffdba9551aedc75c5c0ef89536c6a2bafe7a55f1b795c3bba2248455536",
    "format1-small": "1d1e3d3a3fef4c121f1342d8cd977d6922a5f11ddad07f48428fa64914aa0cb8",
}


def spec(steps):
    entries = {"kind": "stream", "stream": "golden", "version": 1, "parameters": {"scale": 0.1, "large": 1e20}}
    return {**entries, "prng": "threefry2x32/partitionable", "seed": 4294967295, "steps": steps}


def short_rows(start, stop):
    steps = np.arange(start, stop, dtype=np.float32)
    return {
        "observations": np.stack([steps, -steps / 4, steps * steps], 1),
        "targets": (steps * 3 - 1)[:, None],
        "rewards": steps.astype(np.float64) / 7,
        "truncated": np.arange(start, stop) % 50 == 49,
    }


def long_rows(start, stop):
    steps = np.arange(start, stop)
    return {"actions": (steps // 1000 % 5).astype(np.uint8), "targets": (steps // 4096).astype(np.int16)[:, None]}


SHORT = [
    ArrayDeclaration("observations", "float32", (3,), columns=("a", "b", "c")),
    ArrayDeclaration("targets", "float32", (1,)),
    ArrayDeclaration("rewards", "float64", ()),
    ArrayDeclaration("truncated", "bool", ()),
]
FINAL = ArrayDeclaration("final_observations", "float32", (3,), by_step=False)
LONG = [ArrayDeclaration("actions", "uint8", ()), ArrayDeclaration("targets", "int16", (1,))]
# name → steps, arrays, their rows, chunk_steps, codec, whether there are episodes
MAKINGS = {
    "format1-none": (200, SHORT, short_rows, 64, "none", True),
    "format1-fast": (200, SHORT, short_rows, 128, "fast", False),
    "format1-small": (140_000, LONG, long_rows, 100_000, "small", False),
}


def state(step):
    return {
        "key": np.array([1, step], np.uint32),
        "inner/weights": np.full(2, step, np.float32),
        "count": np.int32(step),
    }


def make(name, path):
    steps, arrays, rows, chunk_steps, codec, episodes = MAKINGS[name]
    declarations = [*arrays, FINAL] if episodes else arrays
    options = {"checkpoint_state": state(0), "chunk_steps": chunk_steps, "codec": codec}
    with Writer.begin(path, spec(steps), {"alberta_data": "0.1.0"}, declarations, **options) as writer:
        for start in range(0, steps, 2**16):
            stop = min(start + 2**16, steps)
            extra = {"final_observations": rows(start, stop)["observations"][49::50] + 1} if episodes else {}
            writer.append(Block(start, rows(start, stop)), state(stop), extra)
        writer.finish({"title": "golden", "licence": "CC0-1.0"}, {"note": [1, 2.5, None]})


@pytest.mark.parametrize("name", MAKINGS)
def test_a_golden_dataset_is_read_under_its_id(name, record_property):
    record_property("T16", 1)
    steps, arrays, rows, *_ = MAKINGS[name]
    with open_store(GOLDEN / f"{name}.zarr") as store:
        assert store.root.id == IDS[name]
        assert store.verify().ok
        for array in arrays:
            assert np.array_equal(store.read(array.name), rows(0, steps)[array.name])
        found, values = store.checkpoint(steps)
        assert found == (steps - 1) // 2**17 * 2**17
        assert {path: value.tolist() for path, value in values.items()} == {
            path: value.tolist() for path, value in state(found).items()
        }
        assert store.root.about["title"] == "golden"


@pytest.mark.parametrize("name", MAKINGS)
def test_a_golden_dataset_made_today_has_the_same_id_and_files(name, tmp_path, record_property):
    record_property("T16", 1)
    make(name, tmp_path / "d")
    with open_store(tmp_path / "d") as store:
        assert store.root.id == IDS[name]
    golden = GOLDEN / f"{name}.zarr"
    files = {path.relative_to(golden) for path in golden.rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "d") for path in (tmp_path / "d").rglob("*") if path.is_file()}
    if name == "format1-none":
        # Compressed bytes, and so a root that lists their digests, may differ with the release of Blosc.
        assert all((golden / file).read_bytes() == (tmp_path / "d" / file).read_bytes() for file in files)
