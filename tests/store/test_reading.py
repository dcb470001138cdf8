"""Blocks, ranges, and zips of what was written; the same rows whatever the way."""

import gc
import os
import threading
import time
import zipfile

import numpy as np
import pytest

from alberta_data.errors import ArgumentError, DamagedDatasetError, RefusedError
from alberta_data.store import ArrayDeclaration, open_store, replaying
from tests.store.damage import flip
from tests.store.made import EVEN, LEAFY, PACKED, SMALL, TINY

RECIPES = {"small": SMALL, "packed": PACKED, "leafy": LEAFY, "even": EVEN, "odd packed": LEAFY.but(codec="small")}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    opened = {}
    for name, recipe in RECIPES.items():
        recipe.write(folder / name)
        opened[name] = open_store(folder / name)
    yield opened
    for store in opened.values():
        store.close()


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("block_steps", [None, 1000, 2**15, 2**17, 7777])
def test_blocks_hold_every_row_once_in_order(name, block_steps, stores):
    recipe, store = RECIPES[name], stores[name]
    for start, stop in ((0, recipe.steps), (recipe.steps // 3, recipe.steps - 1), (5, 6), (7, 7)):
        step = start
        for block in store.blocks(start, stop, block_steps=block_steps):
            assert block.start == step
            assert block.stop == stop or block_steps is None or block.stop % block_steps == 0
            for array in recipe.arrays:
                assert np.array_equal(block.arrays[array.name], recipe.rows(array, block.start, block.stop))
            step = block.stop
        assert step == stop


def test_a_block_is_the_memory_that_was_read_aligned_and_read_only(stores):
    with stores["even"].blocks(block_steps=2**16) as blocks:
        for block in blocks:
            rows = block.arrays["flags"]
            assert rows.ctypes.data % 64 == 0
            assert not rows.flags.writeable
            assert not rows.flags.owndata


def test_all_blocks_hold_for_as_long_as_they_are_held(stores):
    for block_steps in (2**12, 2**16):
        with stores["even"].blocks(block_steps=block_steps) as blocks:
            for kept in list(blocks):
                assert np.array_equal(kept.arrays["flags"], EVEN.rows(EVEN.arrays[0], kept.start, kept.stop))


def test_a_part_of_a_block_that_is_held_keeps_the_block_from_being_overwritten(stores):
    with stores["even"].blocks(block_steps=2**12) as blocks:
        parts = [(block.start, block.arrays["flags"][::7][3:9]) for block in blocks]
    for start, part in parts:
        assert np.array_equal(part, EVEN.rows(EVEN.arrays[0], start, start + 2**12)[::7][3:9])


def test_buffers_are_used_again(stores):
    with stores["leafy"].blocks(block_steps=2**12) as blocks:
        addresses = {block.arrays["flags"].ctypes.data // 2**16 for block in blocks}
    assert len(addresses) < 25


def test_what_is_read_ahead_of_a_slow_reader_has_its_bound_in_bytes(tmp_path, monkeypatch):
    wide = SMALL.but(steps=4096, chunk_steps=512, arrays=(ArrayDeclaration("flags", "uint8", (16_384,)),))
    wide.write(tmp_path / "wide")
    read, taken = replaying.LeafReader.read, []

    def counted(self, start, stop, data):
        taken.append(data.nbytes)
        return read(self, start, stop, data)

    monkeypatch.setattr(replaying.LeafReader, "read", counted)
    with open_store(tmp_path / "wide") as store, store.blocks(block_steps=64) as blocks:
        next(blocks)
        while not blocks._producer.ready.full():
            time.sleep(0.01)
        assert sum(taken) <= 24 * 2**20  # 64 MiB in all: 8 MiB ahead, the window being cut and the one before it
        assert sum(1 for _ in blocks) == 4096 // 64 - 1


def test_any_range_of_rows_can_be_read(stores):
    rng = np.random.default_rng(0)
    for name, recipe in RECIPES.items():
        for _ in range(20):
            start, stop = sorted(rng.integers(0, recipe.steps + 1, 2).tolist())
            for array in recipe.arrays:
                assert np.array_equal(stores[name].read(array.name, start, stop), recipe.rows(array, start, stop))
    assert np.array_equal(stores["small"].read("final_observations"), SMALL.final(0, SMALL.steps)["final_observations"])


def test_arguments_out_of_range_are_refused(stores):
    store = stores["small"]
    for wrong in (
        lambda: store.read("nothing"),
        lambda: store.read("targets", -1, 3),
        lambda: store.read("targets", 5, 3),
        lambda: store.read("targets", 0, 2001),
        lambda: store.blocks(0, 2001),
        lambda: store.blocks(names=["final_observations"]),
        lambda: store.blocks(names=[]),
        lambda: store.blocks(block_steps=0),
        lambda: store.checkpoint(2001),
    ):
        with pytest.raises(ArgumentError):
            wrong()


def test_nothing_of_a_damaged_leaf_is_handed_on_and_all_before_it_is(tmp_path):
    EVEN.write(tmp_path / "d")
    flip(tmp_path / "d/flags/c/1", 10, 0)
    handed_on = []
    with open_store(tmp_path / "d") as store, store.blocks(block_steps=2**14) as blocks:
        with pytest.raises(DamagedDatasetError) as caught:
            handed_on.extend(block.stop for block in blocks)
        assert (caught.value.array, caught.value.chunk) == ("flags", "flags/c/1")
        assert handed_on == [2**14, 2**15, 3 * 2**14, 2**16]
        with pytest.raises(StopIteration):
            next(blocks)


def test_an_iterator_left_lying_ends_its_thread(stores):
    blocks = stores["leafy"].blocks(block_steps=64)
    next(blocks)
    thread = next(t for t in threading.enumerate() if t.name == "alberta-data read")
    del blocks
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_a_dataset_is_read_whatever_changes_at_its_name(tmp_path):
    EVEN.write(tmp_path / "d")
    with open_store(tmp_path / "d") as store:
        os.rename(tmp_path / "d", tmp_path / "e")
        assert store.verify().ok


def packed(folder, path, prefix="", *, last=False, **options):
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    files.sort(key=lambda p: (p == folder / "zarr.json") == last)
    with zipfile.ZipFile(path, "w", **options) as archive:
        for file in files:
            archive.write(file, f"{prefix}{file.relative_to(folder)}")
    return path


@pytest.mark.parametrize("prefix", ["", "d.zarr/"])
@pytest.mark.parametrize("last", [False, True])
def test_a_zip_is_read_in_place_with_its_root_first_or_last(prefix, last, tmp_path):
    SMALL.write(tmp_path / "d")
    with open_store(packed(tmp_path / "d", tmp_path / "d.zip", prefix, last=last)) as store:
        assert store.verify().ok
        assert np.array_equal(store.read("observations"), SMALL.rows(SMALL.arrays[0], 0, SMALL.steps))
        assert sum(len(block) for block in store.blocks()) == SMALL.steps


def test_a_damaged_zip_is_damage_named_by_chunk(tmp_path):
    TINY.write(tmp_path / "d")
    path = packed(tmp_path / "d", tmp_path / "d.zip")
    with open_store(path) as store:
        entry = store.source._entry("observations/c/1/0")
        offset = store.source._data_offset(entry)
    flip(path, offset + 5, 1)
    with open_store(path) as store:
        assert [damage.chunk for damage in store.verify().damages] == ["observations/c/1/0"]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedDatasetError, match="cut"):
        open_store(path)


def test_zips_of_another_kind_are_refused(tmp_path):
    TINY.write(tmp_path / "d")
    with pytest.raises(RefusedError, match="uncompressed"):
        open_store(packed(tmp_path / "d", tmp_path / "deflated.zip", compression=zipfile.ZIP_DEFLATED))
    for name in ("../x", "/abs", "a\\..\\..\\x", "C:x", "a//b", "./x"):
        path = packed(tmp_path / "d", tmp_path / "d.zip")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, b"x")
        with pytest.raises(RefusedError, match="inside it"):
            open_store(path)
    path = packed(tmp_path / "d", tmp_path / "d.zip")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("zarr.json", b"x")
    with pytest.raises(RefusedError, match="twice"):
        open_store(path)
    path = packed(tmp_path / "d", tmp_path / "d.zip")
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(RefusedError, match="plain files"):
        open_store(path)
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(RefusedError, match="another file"):
        open_store(tmp_path / "text")
    with pytest.raises(ArgumentError, match="nothing"):
        open_store(tmp_path / "nothing")
    with pytest.raises(ArgumentError, match="another folder"):
        open_store(tmp_path)


def test_a_file_beside_the_dataset_in_a_zip_is_a_stray(tmp_path):
    TINY.write(tmp_path / "d")
    path = packed(tmp_path / "d", tmp_path / "d.zip", "d/")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/d/zarr.json", b"x")
    with open_store(path) as store:
        assert store.verify().strays == ["__MACOSX/d/zarr.json"]


def test_progress_is_told_from_the_calling_thread_and_ends_at_all_bytes(stores):
    told = []
    store = stores["leafy"]
    report = store.verify(progress=lambda done, of: told.append((done, of, threading.get_ident())))
    assert report.checked == store.root.size == told[-1][0] == told[-1][1]
    assert {thread for *_, thread in told} == {threading.get_ident()}
