"""A recipe is small, canonical, and a stranger's data like a dataset."""

import json
import os

import pytest

from alberta_data.dataset import create_dataset, open_dataset, reproduce
from alberta_data.errors import AlbertaDataError, ArgumentError, RefusedError
from alberta_data.share import read_recipe, recipe
from alberta_data.store import canonical, open_store
from alberta_data.streams.registry import STREAMS
from alberta_data.streams.scaled import ScaledStreamWrapper
from tests.store.made import TINY


@pytest.fixture
def written(tmp_path):
    def write(value):
        path = tmp_path / "r.json"
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    return write


@pytest.fixture
def good(made):
    return json.loads(recipe(made("tiny")))


def test_a_recipe_holds_spec_id_and_versions_and_reads_back(made, written):
    text = recipe(made("tiny"))
    with open_store(made("tiny")) as store:
        root = store.root
        assert recipe(store) == text
    assert canonical.dumps(json.loads(text)) == text.encode()
    assert read_recipe(written(text.encode() + b"\n")) == {
        "spec": root.spec,
        "id": root.id,
        "made_with": root.made_with,
    }


def test_an_open_dataset_tells_its_recipe_itself(made):
    with open_dataset(made("tiny")) as dataset:
        assert dataset.recipe() == recipe(made("tiny"))


@pytest.mark.parametrize("name", ["abrupt", "sutton1"])
def test_a_recipe_is_under_four_kilobytes_and_makes_the_same_id(name, tmp_path, written):
    stream = STREAMS[name](feature_dim=5) if "feature_dim" in STREAMS[name].__dataclass_fields__ else STREAMS[name]()
    made = create_dataset(stream, steps=300, seed=3, path=tmp_path / "d.zarr")
    text = recipe(made)
    assert len(text.encode()) < 4096
    again = reproduce(read_recipe(written(text.encode())), tmp_path / "again.zarr")
    assert again.identical
    assert again.id == made.id


def test_the_scales_of_a_wrapped_stream_come_on_top(tmp_path):
    stream = ScaledStreamWrapper(STREAMS["abrupt"](feature_dim=100), tuple(0.1 * n for n in range(1, 101)))
    text = recipe(create_dataset(stream, steps=10, path=tmp_path / "d.zarr"))
    scales = json.loads(text)["spec"]["parameters"]["feature_scales"]
    assert len(scales) == 100
    assert len(text) - len(json.dumps(scales)) < 4096


BROKEN = {
    "no json": lambda r: b"hello",
    "empty": lambda r: b"",
    "a list": lambda r: [r],
    "a key more": lambda r: {**r, "run": "os.system"},
    "a key less": lambda r: {k: v for k, v in r.items() if k != "made_with"},
    "a key twice": lambda r: b'{"id":1,"id":2}',
    "another version": lambda r: {**r, "recipe_version": 2},
    "version true": lambda r: {**r, "recipe_version": True},
    "spec a text": lambda r: {**r, "spec": "os:system"},
    "spec with more": lambda r: {**r, "spec": {**r["spec"], "entry_point": "os:system"}},
    "steps 1e15 as text": lambda r: {**r, "spec": {**r["spec"], "steps": "1e15"}},
    "no steps": lambda r: {**r, "spec": {**r["spec"], "steps": 0}},
    "a seed too large": lambda r: {**r, "spec": {**r["spec"], "seed": 2**32}},
    "another kind": lambda r: {**r, "spec": {**r["spec"], "kind": "pickle"}},
    "short id": lambda r: {**r, "id": "abc"},
    "id no text": lambda r: {**r, "id": 5},
    "id in capitals": lambda r: {**r, "id": "A" * 64},
    "made_with nested": lambda r: {**r, "made_with": {"x": {"y": 1}}},
    "made_with a list": lambda r: {**r, "made_with": []},
    "nested deep": lambda r: b"[" * 10_000,
    "nan": lambda r: b'{"id":NaN}',
    "large": lambda r: b" " * (17 * 2**20),
    "no utf-8": lambda r: b"\xff\xfe",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_recipe_is_refused(kind, good, written, record_property):
    record_property("T10", 1)
    with pytest.raises(RefusedError) as raised:
        read_recipe(written(BROKEN[kind](good)))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_no_file_is_told(tmp_path):
    with pytest.raises(ArgumentError):
        read_recipe(tmp_path / "nothing.json")
    with pytest.raises(ArgumentError):
        read_recipe(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AlbertaDataError):
        read_recipe(tmp_path / "pipe")


def test_a_recipe_of_a_prepared_dataset_cannot_be_made_here(made, written):
    found = read_recipe(written(recipe(made("tiny")).encode()))
    with pytest.raises(AlbertaDataError, match="not known here"):
        reproduce(found)
    assert TINY.steps == found["spec"]["steps"]
