"""T15: one id over block lengths, chunk sizes, seeds and ways, for every stream."""

import json
import os
import shutil
from pathlib import Path

import pytest

from alberta_data.dataset import create_dataset
from alberta_data.streams.registry import STREAMS
from tests.streams.making import with_features

IDS = json.loads((Path(__file__).parent.parent / "data" / "ids.json").read_text())


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Thousands of files: what they hold is looked at here, not when it is on the disk."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def ids_of(folder, stream, steps, seed, ways):
    found = set()
    for way in ways:
        found.add(create_dataset(stream, steps=steps, seed=seed, path=folder / "d.zarr", **way).id)
        shutil.rmtree(folder / "d.zarr")
    return found


@pytest.mark.parametrize("name", STREAMS)
def test_short_blocks_and_chunks_make_one_id(name, tmp_path, record_property):
    ways = [{}, {"block_steps": 1, "chunk_steps": 7}, {"block_steps": 7, "chunk_steps": 1}, {"block_steps": 501}]
    assert len(ids_of(tmp_path, with_features(name, 3), 2000, 3, ways)) == 1
    record_property("T15", len(ways))


@pytest.mark.parametrize("name", STREAMS)
def test_long_blocks_and_chunks_make_one_id(name, tmp_path, record_property):
    ways = [{}, {"block_steps": 1000, "chunk_steps": 4096}, {"block_steps": 4096, "chunk_steps": 1000}]
    assert len(ids_of(tmp_path, with_features(name, 3), 140_000, 3, ways)) == 1
    record_property("T15", len(ways))


@pytest.mark.torture
@pytest.mark.parametrize("features", [1, 3, 5, 20, 300])
@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_width_seed_and_way_makes_one_id(name, features, tmp_path, record_property):
    stream = with_features(name, features)
    long = [
        {},
        {"block_steps": 1000},
        {"block_steps": 4096, "chunk_steps": 4096},
        {"block_steps": 2**17, "codec": "fast"},
    ]
    short = [{}, {"block_steps": 1}, {"block_steps": 7, "chunk_steps": 7}]
    for seed in range(5):
        assert len(ids_of(tmp_path, stream, 2000, seed, short)) == 1
        assert len(ids_of(tmp_path, stream, 300_001 if features < 300 else 140_000, seed, long)) == 1
    record_property("T15", 5 * (len(short) + len(long)))


def test_the_readme_s_ways_make_the_id_that_every_supported_python_has_made(tmp_path):
    stream = with_features("abrupt", 20)
    ways = [{}, {"chunk_steps": 1000}, {"chunk_steps": 4096, "block_steps": 1000}]
    expected = {"1d50e6b5b9b8af17c9a00b9bb1134fd9f1e76771eccf840c56a6b4705b220d48"}
    assert ids_of(tmp_path, stream, 300_001, 7, ways) == expected
