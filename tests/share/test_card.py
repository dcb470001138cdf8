"""What a dataset says of itself: changed in one step, and written for people and machines with every text escaped."""

import json
import sys

import pytest

from alberta_data.errors import ArgumentError, DestinationError, UnavailableError
from alberta_data.share import annotate, card, croissant, pack
from alberta_data.store import annotate as store_annotate
from alberta_data.store import open_store
from tests.share.conftest import is_whole
from tests.store.faults import stopped_at

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

EVIL = (
    "x\n---\nlicense: mit\n# `rm` <script>alert(1)</script> | [a](javascript:b) "
    "\x1b[31m \u202e ''' \"\"\" {{ }} \u2028 \U0001f600"
)
# rdflib, which mlcroissant reads JSON-LD with.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def header(text):
    assert text.startswith("---\n")
    return yaml.safe_load(text.split("---\n")[1])


def test_annotating_keeps_the_id_and_what_is_not_given(copied):
    path = copied("small")
    with open_store(path) as store:
        before = store.root
    annotate(path, title="A title", licence="CC-BY-4.0", creators=["A. B.", "C"], links="https://x.org/y?z=1")
    annotate(path, description="Two\nlines.", citation="@misc{x}")
    with open_store(path) as store:
        assert store.root.id == before.id
        assert store.root.files == before.files
        assert store.root.about == {
            "title": "A title", "licence": "CC-BY-4.0", "creators": ["A. B.", "C"], "links": ["https://x.org/y?z=1"],
            "description": "Two\nlines.", "citation": "@misc{x}",
        }  # fmt: skip
    annotate(path, title="", creators=[])
    with open_store(path) as store:
        assert set(store.root.about) == {"licence", "links", "description", "citation"}
    assert is_whole(path)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"title": "a\nb"}, {"title": "x" * 201}, {"title": 5}, {"licence": "a\nb"}, {"creators": [""]},
        {"creators": [5]}, {"links": ["javascript:alert(1)"]}, {"links": ["https://a b"]}, {"links": ["ftp://x"]},
    ],
)  # fmt: skip
def test_fields_of_another_form_are_refused(fields, made):
    with pytest.raises(ArgumentError):
        annotate(made("tiny"), **fields)
    assert is_whole(made("tiny"))


def test_a_packed_dataset_is_not_annotated(made, tmp_path):
    with pytest.raises(DestinationError, match="unpack"):
        annotate(pack(made("tiny"), tmp_path / "d.zip"), title="x")


def test_annotating_stopped_at_any_operation_leaves_one_of_the_two(copied, unsynced, record_property):
    path, number = copied("tiny"), 0
    while stopped_at(number, lambda: annotate(path, title="new")):
        with open_store(path) as store:
            assert not store.verify().damages
        number += 1
    record_property("T1", number)
    assert number >= 5


@pytest.mark.parametrize("shape", ["tiny", "small", "packed", "leafy"])
@pytest.mark.parametrize("url", [None, "https://example.org/d.zarr"])
def test_a_card_has_a_header_that_the_hub_reads_and_no_blank_field(shape, url, made):
    text = card(made(shape), url=url)
    found = header(text)
    assert {"pretty_name", "size_categories", "task_categories", "tags"} <= set(found)
    assert all(found.values())
    assert "license" not in found
    with open_store(made(shape)) as store:
        assert text.count(store.root.id) >= 2
    assert "None" not in text
    assert "open_dataset" in text
    if url:
        assert f"alberta-data fetch {url} --id" in text


def test_size_and_licence_are_the_hubs_own_names(copied):
    path = copied("tiny")
    annotate(path, licence="CC0-1.0")
    assert header(card(path))["license"] == "cc0-1.0"
    assert header(card(path))["size_categories"] == ["n<1K"]
    annotate(path, licence="Our own: terms")
    found = header(card(path))
    assert (found["license"], found["license_name"]) == ("other", "Our own: terms")


def test_a_strangers_texts_do_nothing_in_a_card(copied):
    path = copied("tiny")
    store_annotate(path, {
        "title": EVIL, "description": EVIL, "licence": EVIL, "creators": [EVIL, 5], "citation": "```\n# out\n" + EVIL,
        "links": ["javascript:alert(1)", "https://x/ a", 7, "https://ok.org"], "other": EVIL,
    })  # fmt: skip
    text = card(path)
    found = header(text)
    assert set(found) == {"pretty_name", "license", "license_name", "size_categories", "task_categories", "tags"}
    body = text.split("---\n", 2)[2]
    assert "<script>" not in body.replace("```text", "").split("## Cite it")[0]
    assert "](" not in body.split("## Cite it")[0]
    assert body.count("```") == 8
    assert not {"\x1b", "\u202e", "\u2028"} & set(text)
    assert "javascript" not in text.split("## See also")[1]


def test_a_description_of_another_type_is_left_out(copied):
    path = copied("tiny")
    store_annotate(path, {"title": 5, "description": {"a": 1}, "links": "x", "licence": None, "creators": {"a": 1}})
    assert "license" not in header(card(path))
    assert croissant(path)["name"]


@pytest.mark.parametrize("shape", ["small", "packed", "leafy"])
@pytest.mark.parametrize("url", [None, "https://example.org/d.zarr"])
def test_croissant_is_valid_by_the_real_package(shape, url, copied):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    path = copied(shape)
    annotate(path, title="A title", licence="CC-BY-4.0", creators=["A. B."], links=["https://x.org"])
    found = json.loads(json.dumps(croissant(path, url=url)))
    read = mlcroissant.Dataset(jsonld=found)
    assert read.metadata.ctx.issues.errors == set()
    assert read.metadata.license == ["https://spdx.org/licenses/CC-BY-4.0"]
    root = next(entry for entry in read.metadata.distribution if entry.id == "root")
    with open_store(path) as store:
        import hashlib

        assert root.sha256 == hashlib.sha256(store.root_bytes).hexdigest()
        assert {entry.id for entry in read.metadata.distribution} >= set(store.root.arrays)

    def blanks(value):
        if isinstance(value, dict):
            return any(map(blanks, value.values()))
        return any(map(blanks, value)) if isinstance(value, list) else value in ("", None)

    assert not blanks(found)


def test_a_strangers_texts_are_valid_croissant(copied):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    path = copied("tiny")
    store_annotate(path, {"title": EVIL, "description": EVIL, "licence": EVIL, "creators": [EVIL], "citation": EVIL})
    assert mlcroissant.Dataset(jsonld=croissant(path)).metadata.ctx.issues.errors == set()


def test_without_the_yaml_library_the_extra_is_named(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UnavailableError, match=r"alberta-data\[card\]"):
        card(made("tiny"))
