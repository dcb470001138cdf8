"""The recipes of the standard suite: all there, small, and those of 1e5 steps give their ids here."""

import importlib.util
import json
from pathlib import Path

import pytest

from alberta_data.dataset import create_dataset
from alberta_data.share import read_recipe, recipe
from alberta_data.share.recipes import recipe_from_bytes
from alberta_data.streams.registry import STREAMS

FOLDER = Path(__file__).parents[2] / "datasets/recipes"


def suite():
    spec = importlib.util.spec_from_file_location("make_recipes", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: (stream, steps, seed) for name, stream, steps, seed in module.suite()}


SUITE = suite()


def test_every_stream_has_three_lengths_and_three_seeds_and_there_is_nothing_else():
    assert {path.name for path in FOLDER.glob("*.json")} == set(SUITE)
    assert len(SUITE) == (len(STREAMS) + 1) * 9
    assert {stream.name for stream, _, _ in SUITE.values()} == set(STREAMS)


@pytest.mark.parametrize("name", SUITE)
def test_a_recipe_of_the_suite_is_small_and_of_the_stream_that_its_name_says(name):
    stream, steps, seed = SUITE[name]
    data = (FOLDER / name).read_bytes()
    assert len(data) < 4096
    assert recipe_from_bytes(data)["spec"] == stream.spec(seed, steps)


@pytest.mark.parametrize("name", [name for name, (_, steps, _) in SUITE.items() if steps == 100_000])
def test_a_recipe_of_a_hundred_thousand_steps_gives_its_id(name, tmp_path):
    stream, steps, seed = SUITE[name]
    with create_dataset(stream, steps=steps, seed=seed, path=tmp_path / "d.zarr") as made:
        assert made.id == read_recipe(FOLDER / name)["id"]
        assert json.loads(recipe(made))["spec"] == json.loads((FOLDER / name).read_bytes())["spec"]
