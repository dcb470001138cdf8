"""T5, T6, T7: bits flipped, files cut, grown, gone, doubled or exchanged; all of it is seen, and named."""

import os
import random
import shutil

import numpy as np
import pytest

from alberta_data.errors import DamagedDatasetError, IncompleteDatasetError, RefusedError
from alberta_data.store import open_store
from alberta_data.store.metadata import Root
from tests.store.damage import flip, found_by_verify, in_one_line, learn, overwrite, refused
from tests.store.made import EVEN, LEAFY, PACKED, SMALL, TINY

RECIPES = {"small": SMALL, "packed": PACKED, "leafy": LEAFY, "even": EVEN, "odd packed": LEAFY.but(codec="fast")}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    for name, recipe in RECIPES.items():
        recipe.write(folder / name)
    return folder


def chunks_of(path):
    with open_store(path) as store:
        layouts = store.root.layouts
        return [(name, x.chunk_key(n)) for name, x in layouts.items() for n in range(x.chunks)]


def flip_root(tmp_path, bits_of, record_property):
    data = bytes(TINY.write(tmp_path / "d.zarr").to_bytes())
    for byte in range(len(data)):
        for bit in bits_of(byte):
            changed = bytearray(data)
            changed[byte] ^= 1 << bit
            with pytest.raises((DamagedDatasetError, RefusedError)):
                Root.from_bytes(bytes(changed))
    record_property("T5", sum(len(bits_of(byte)) for byte in range(len(data))))
    return len(data)


def test_no_byte_of_the_root_can_change_unseen(tmp_path, record_property):
    assert flip_root(tmp_path, lambda byte: [byte % 8], record_property) > 3000


@pytest.mark.torture
def test_no_bit_of_the_root_can_change_unseen(tmp_path, record_property):
    assert flip_root(tmp_path, lambda byte: range(8), record_property) > 3000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"prepared"', b'"prepares"'),
        (b'"seal":"', b'"seal": "'),
        (b'"steps":20', b'"steps":2e1'),
        (b'"title"', b'"t\\u0069tle"'),
        (b'"x86_64"', b'"arm_64"'),
    ],
)
def test_a_root_that_is_not_as_it_was_sealed_is_damaged(old, new, tmp_path, record_property):
    record_property("T5", 1)
    TINY.write(tmp_path / "d.zarr")
    data = (tmp_path / "d.zarr/zarr.json").read_bytes()
    assert old in data
    overwrite(tmp_path / "d.zarr/zarr.json", data.replace(old, new, 1))
    with pytest.raises(DamagedDatasetError) as caught:
        open_store(tmp_path / "d.zarr")
    assert caught.value.chunk == "zarr.json"


def flip_documents(tmp_path, bits_of, record_property):
    path = tmp_path / "d.zarr"
    root = TINY.write(path)
    documents = [name for name in root.files if name.endswith("zarr.json")]
    for name in documents:
        data = (path / name).read_bytes()
        with open_store(path) as store:
            for byte in range(len(data)):
                for bit in bits_of(byte):
                    overwrite(path / name, data)
                    flip(path / name, byte, bit)
                    assert [damage.chunk for damage in store.verify(workers=1).damages] == [name]
            overwrite(path / name, data)
        record_property("T5", sum(len(bits_of(byte)) for byte in range(len(data))))
    return len(documents)


def test_no_byte_of_an_arrays_document_can_change_unseen(tmp_path, record_property):
    assert flip_documents(tmp_path, lambda byte: [byte % 8], record_property) > 5


@pytest.mark.torture
def test_no_bit_of_an_arrays_document_can_change_unseen(tmp_path, record_property):
    assert flip_documents(tmp_path, lambda byte: range(8), record_property) > 5


def flip_chunks(originals, count, seed, record_property):
    rng = random.Random(seed)
    for _ in range(count):
        path = originals / rng.choice(list(RECIPES))
        array, key = rng.choice(chunks_of(path))
        data = (path / key).read_bytes()
        # The four bytes of CRC and the padding are as likely as all the rest.
        byte = rng.choice((rng.randrange(len(data)), len(data) - 1 - rng.randrange(4), len(data) - 5))
        flip(path / key, byte, rng.randrange(8))
        found = found_by_verify(path)
        assert (array, key) in found, (path, key, byte)
        assert len(found) == 1
        with open_store(path) as store:
            if array in store.root.arrays and store.by_step(array):
                with pytest.raises(DamagedDatasetError) as caught:
                    learn(store)
                assert (caught.value.array, caught.value.chunk) == (array, key)
        overwrite(path / key, data)
    record_property("T5", count)


def test_no_bit_of_a_chunk_can_change_unseen(originals, record_property):
    flip_chunks(originals, 300, 1, record_property)
    assert all(not found_by_verify(originals / name) for name in RECIPES)


@pytest.mark.torture
def test_no_bit_of_many_in_chunks_can_change_unseen(originals, record_property):
    flip_chunks(originals, 10_000, 2, record_property)
    assert all(not found_by_verify(originals / name) for name in RECIPES)


def put_in_its_place(path, how):
    """Take a file away and put something else in its place."""
    data = path.read_bytes()
    if how in ("cut to 0", "cut to 1", "cut to 16", "cut by 1"):
        size = {"cut to 0": 0, "cut to 1": 1, "cut to 16": 16, "cut by 1": len(data) - 1}[how]
        overwrite(path, data[: min(size, len(data) - 1)])
    elif how == "one more byte":
        overwrite(path, data + b"\0")
    elif how == "twice":
        overwrite(path, data + data)
    else:
        path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how == "a dangling link":
        path.symlink_to("nowhere")
    elif how == "a link to itself":
        path.symlink_to(path.name)
    elif how == "a pipe":
        os.mkfifo(path)


HOWS = (
    *("cut to 0", "cut to 1", "cut to 16", "cut by 1", "one more byte", "twice"),
    *("gone", "a folder", "a dangling link", "a link to itself", "a pipe"),
)


def spoil_each_file(original, tmp_path, record_property):
    with open_store(original) as store:
        files = list(store.root.files)
    for how in HOWS:
        for name in files:
            path = tmp_path / "d.zarr"
            shutil.copytree(original, path)
            put_in_its_place(path / name, how)
            array = next((a for a in store.root.layouts if name.startswith(f"{a}/")), None)
            assert found_by_verify(path) == {(array, name)}, (how, name)
            assert found_by_verify(path, quick=True) == {(array, name)}, (how, name)
            if array in store.root.arrays and store.by_step(array):
                with open_store(path) as store, pytest.raises(DamagedDatasetError) as caught:
                    learn(store)
                said = str(in_one_line(caught.value))
                assert name in said
                assert "expected" in said
                assert "found" in said
            shutil.rmtree(path)
    record_property("T6", len(HOWS) * len(files))
    return len(files)


def test_a_file_that_is_cut_grown_gone_or_something_else_is_named_with_what_was_expected(
    tmp_path, unsynced, record_property
):
    PACKED.but(steps=500, arrays=PACKED.arrays[1:]).write(tmp_path / "original")
    assert spoil_each_file(tmp_path / "original", tmp_path, record_property) > 8


@pytest.mark.torture
@pytest.mark.parametrize("name", ["small", "packed", "leafy", "even"])
def test_files_of_any_dataset_that_are_not_as_written_are_named(name, originals, tmp_path, record_property):
    assert spoil_each_file(originals / name, tmp_path, record_property) > 8


def test_an_unreadable_file_is_damage(tmp_path, monkeypatch):
    root = TINY.write(tmp_path / "d.zarr")
    opened = os.open

    def refusing(path, *arguments, **more):
        if str(path).startswith("targets/c"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    assert {key for _, key in found_by_verify(tmp_path / "d.zarr")} == {
        k for k in root.files if k.startswith("targets/c")
    }


def test_a_failing_disk_is_no_damage(tmp_path, monkeypatch):
    from alberta_data.errors import StorageError

    TINY.write(tmp_path / "d.zarr")

    def failing(*arguments):
        raise OSError(5, "Input/output error")

    with open_store(tmp_path / "d.zarr") as store:
        monkeypatch.setattr(os, "preadv", failing)
        with pytest.raises(StorageError, match="Input/output error"):
            store.verify()


@pytest.mark.parametrize("how", HOWS)
def test_a_root_that_is_not_as_written_opens_nothing(how, tmp_path, record_property):
    record_property("T6", 1)
    TINY.write(tmp_path / "d.zarr")
    put_in_its_place(tmp_path / "d.zarr/zarr.json", how)
    error = refused(tmp_path / "d.zarr")
    assert isinstance(error, DamagedDatasetError | RefusedError | IncompleteDatasetError)


def test_stray_files_are_listed_and_dot_files_are_notes_and_a_learner_ignores_both(tmp_path, record_property):
    record_property("T6", 5)
    TINY.write(tmp_path / "d.zarr")
    for name in ("observations/c/7", "notes.txt", "observations/.DS_Store", ".git"):
        (tmp_path / "d.zarr" / name).mkdir(parents=True) if name.endswith(("7", "git")) else None
    for name in ("observations/c/7/0", "notes.txt", "observations/.DS_Store", ".git/config"):
        (tmp_path / "d.zarr" / name).write_bytes(b"x")
    (tmp_path / "d.zarr/link").symlink_to("/")
    with open_store(tmp_path / "d.zarr") as store:
        report = store.verify()
        assert report.strays == ["link", "notes.txt", "observations/c/7/0"]
        assert report.notes == [".git/config", "observations/.DS_Store"]
        assert not report.ok
        assert not report.damages
        assert learn(store) == TINY.steps


def test_padding_that_is_not_the_fill_value_is_seen_even_under_a_right_crc(tmp_path, record_property):
    record_property("T5", 1)
    from alberta_data.store.codecs import crc32c, crc_bytes

    recipe = TINY.but(steps=15)
    recipe.write(tmp_path / "d.zarr")
    file = tmp_path / "d.zarr/rewards/c/1"
    body = bytearray(file.read_bytes()[:-4])
    body[-1] ^= 1
    overwrite(file, bytes(body) + crc_bytes(crc32c(np.frombuffer(body, np.uint8))))
    assert found_by_verify(tmp_path / "d.zarr") == {("rewards", "rewards/c/1")}


@pytest.mark.parametrize("piece", [1, 7, 12, 1000])
def test_padding_is_seen_whatever_the_pieces_it_is_read_in(piece, tmp_path, monkeypatch, record_property):
    from alberta_data.store import leaves
    from alberta_data.store.codecs import crc32c, crc_bytes

    monkeypatch.setattr(leaves, "_PIECE", piece)
    recipe = TINY.but(steps=13)
    recipe.write(tmp_path / "d.zarr")
    with open_store(tmp_path / "d.zarr") as store:
        last = {name: layout.chunk_key(layout.chunks - 1) for name, layout in store.root.layouts.items()}
        sizes = {
            name: layout.rows % layout.chunk_rows * layout.row_bytes for name, layout in store.root.layouts.items()
        }
    assert not found_by_verify(tmp_path / "d.zarr")
    for name in ("observations", "rewards"):
        file = tmp_path / "d.zarr" / last[name]
        whole = file.read_bytes()
        assert 0 < sizes[name] < len(whole) - 4
        for byte in range(sizes[name], len(whole)):
            flip(file, byte, byte % 8)
            if byte % 2 and byte < len(whole) - 4:  # under a right CRC too
                body = file.read_bytes()[:-4]
                overwrite(file, body + crc_bytes(crc32c(np.frombuffer(body, np.uint8))))
            assert found_by_verify(tmp_path / "d.zarr") == {(name, last[name])}
            with open_store(tmp_path / "d.zarr") as store, pytest.raises(DamagedDatasetError):
                learn(store)
            overwrite(file, whole)
            record_property("T5", 1)


def swap_chunks(originals, tmp_path, count, seed, record_property):
    rng, tried = random.Random(seed), 0
    others = {}
    for name, recipe in RECIPES.items():
        others[name] = tmp_path / f"other {name}"
        recipe.but(seed=9).write(others[name])
    for number in range(count):
        name = rng.choice(list(RECIPES))
        path = originals / name
        chunks = chunks_of(path)
        array, key = rng.choice(chunks)
        alike = [other for same, other in chunks if same == array and other != key]
        before = (path / key).read_bytes()
        if number % 3 == 0 or not alike:
            if (others[name] / key).read_bytes() == before:
                continue
            overwrite(path / key, (others[name] / key).read_bytes())
            expected = {(array, key)}
        else:
            other = rng.choice(alike)
            theirs = (path / other).read_bytes()
            overwrite(path / key, theirs)
            expected = {(array, key)}
            if number % 3 == 1:
                overwrite(path / other, before)
                expected |= {(array, other)}
        tried += 1
        found = found_by_verify(path)
        # A leaf that reaches over several chunks is told once, at the chunk where it begins.
        assert found
        assert {array for array, _ in found} == {array}
        assert found == expected or name in ("small", "leafy")
        with open_store(path) as store:
            if array in store.root.arrays and store.by_step(array):
                with pytest.raises(DamagedDatasetError) as caught:
                    learn(store)
                assert (caught.value.array, caught.value.chunk) in found
        if (path / key).read_bytes() != before:
            overwrite(path / key, before)
        if number % 3 == 1 and alike:
            overwrite(path / other, theirs)
    record_property("T7", tried)


def test_a_chunk_from_elsewhere_in_the_dataset_or_from_another_is_seen(originals, tmp_path, record_property):
    swap_chunks(originals, tmp_path, 50, 1, record_property)
    assert all(not found_by_verify(originals / name) for name in RECIPES)


@pytest.mark.torture
def test_no_chunk_of_many_from_elsewhere_passes(originals, tmp_path, record_property):
    swap_chunks(originals, tmp_path, 1000, 2, record_property)
    assert all(not found_by_verify(originals / name) for name in RECIPES)
