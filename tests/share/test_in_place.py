"""A dataset at an address, read in place: the same rows as from a disk, each checked; and the cache."""

import errno
import os
import threading
import time

import numpy as np
import pytest

from alberta_data.errors import DamagedDatasetError, RefusedError, StorageError
from alberta_data.store import addresses, disk, open_store
from alberta_data.store.addresses import AddressSource
from alberta_data.store.cache import Cache
from alberta_data.store.metadata import FileRecord
from alberta_data.store.parts import Part
from tests.share.conftest import SHAPES, flip
from tests.share.servers import serving


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path, unsynced):
    monkeypatch.setattr(addresses, "WAITS", (0.01, 0.01))
    monkeypatch.setattr(addresses, "DENIED_WAITS", (0.01,))
    monkeypatch.setenv("ALBERTA_DATA_CACHE", str(tmp_path / "home"))


@pytest.fixture
def served(made):
    for shape in SHAPES:
        made(shape)
    with serving(made("small").parent) as found:
        yield found


def rows(store):
    found = {name: [] for name in store.root.arrays if store.by_step(name)}
    for block in store.blocks(block_steps=256):
        for name, data in block.arrays.items():
            found[name].append(data.copy())
    return {name: np.concatenate(data) for name, data in found.items()}


@pytest.mark.parametrize("shape", ["small", "packed", "leafy"])
def test_the_rows_are_those_on_disk_and_every_file_comes_once(shape, served, made):
    with open_store(made(shape)) as ours, open_store(f"{served[0]}/{shape}.zarr") as theirs:
        mine, other = rows(ours), rows(theirs)
        assert mine.keys() == other.keys()
        assert all(np.array_equal(mine[name], other[name]) for name in mine)
        assert theirs.verify().ok
        for step in (0, ours.root.steps):
            assert all(
                (a == b).all()
                for a, b in zip(ours.checkpoint(step)[1].values(), theirs.checkpoint(step)[1].values(), strict=True)
            )
    assert len(served[1].asked) == len(set(served[1].asked))


@pytest.mark.parametrize("kind", [403, 404, 500, "short", "html", "reset", "reset in the body", "empty"])
def test_a_fault_for_one_chunk_is_told_and_no_row_of_it_is_handed_on(kind, served, record_property):
    record_property("T8", 1)
    served[1].plan("packed.zarr/observations/c/2/0", kind)
    seen = []
    with open_store(f"{served[0]}/packed.zarr") as store:
        blocks = store.blocks(block_steps=100)
        with pytest.raises(StorageError, match=r"packed\.zarr/observations/c/2/0"):
            seen.extend(block.stop for block in blocks)
    assert seen == []


@pytest.mark.parametrize("kind", ["flipped", "html of the right size"])
@pytest.mark.parametrize("shape", ["small", "packed"])
def test_wrong_bytes_of_the_right_size_are_damage_and_are_not_kept(kind, shape, served, tmp_path, record_property):
    record_property("T8", 1)
    url, faults = served
    faults.plan(f"{shape}.zarr/observations/c/1/0", kind)
    cache = tmp_path / "c"
    with open_store(AddressSource(f"{url}/{shape}.zarr", cache_dir=cache)) as store:
        with pytest.raises(DamagedDatasetError, match="observations/c/1/0"):
            rows(store)
        faults.plan(f"{shape}.zarr/observations/c/1/0", None, 0)
        assert len(rows(store)["observations"]) == store.root.steps
    with open_store(AddressSource(f"{url}/{shape}.zarr", cache_dir=cache)) as store:
        assert store.verify().ok


def test_another_id_than_the_one_named_is_refused(served):
    with pytest.raises(RefusedError, match="not the one you named"):
        AddressSource(f"{served[0]}/small.zarr", id="0" * 64)


def test_the_cache_spares_the_network_and_holds_neither_address_nor_name(served, tmp_path):
    cache = tmp_path / "c"
    for _ in range(2):
        with open_store(AddressSource(f"{served[0]}/small.zarr", cache_dir=cache)) as store:
            rows(store)
    assert len(served[1].asked) == len(set(served[1].asked)) + 1
    assert served[1].asked.count("small.zarr/zarr.json") == 2
    assert all(len(name) == 69 for name in os.listdir(cache))


def test_a_file_of_the_cache_that_was_changed_comes_again(served, tmp_path, made):
    cache = tmp_path / "c"
    with open_store(AddressSource(f"{served[0]}/packed.zarr", cache_dir=cache)) as store:
        before = rows(store)
    files = sorted(cache.iterdir())
    flip(files[0], 3)
    flip(files[1], -1)
    files[2].write_bytes(b"")
    files[3].unlink()
    files[3].symlink_to("/etc/passwd")
    files[4].unlink()
    files[4].mkdir()
    with open_store(AddressSource(f"{served[0]}/packed.zarr", cache_dir=cache)) as store:
        after = rows(store)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_cache_keeps_its_limit_and_the_oldest_goes_first(served, tmp_path):
    cache = tmp_path / "c"
    cache.mkdir()
    (cache / "mine.txt").write_text("x" * 10_000)
    limit = 20_000
    with open_store(AddressSource(f"{served[0]}/small.zarr", cache_dir=cache, cache_bytes=limit)) as store:
        rows(store)
    kept = [p for p in cache.iterdir() if p.name != "mine.txt"]
    assert 0 < sum(p.stat().st_size for p in kept) <= limit
    assert (cache / "mine.txt").exists()
    for age, path in enumerate(sorted(kept)):
        os.utime(path, (time.time() - 1000 - age,) * 2)
    oldest = sorted(kept)[-1]
    with open_store(AddressSource(f"{served[0]}/packed.zarr", cache_dir=cache, cache_bytes=limit)) as store:
        store.read("observations", 0, 10)
    assert not oldest.exists()


def test_files_on_their_way_into_the_cache_count_for_its_limit(tmp_path, monkeypatch):
    cache, most = Cache(tmp_path / "c", 1000), 0
    arrived, go_on, create = threading.Barrier(3), threading.Event(), disk.create

    def slow(path):
        fd = create(path)
        arrived.wait(10)
        go_on.wait(10)
        return fd

    monkeypatch.setattr(disk, "create", slow)
    rows_of = np.zeros(300, np.uint8)
    threads = [threading.Thread(target=cache.put, args=("0" * 64, kept_part(n), rows_of)) for n in range(2)]
    for thread in threads:
        thread.start()
    arrived.wait(10)
    monkeypatch.setattr(disk, "create", create)
    for n in range(2, 9):
        cache.put("0" * 64, kept_part(n), rows_of)
        most = max(most, sum(path.stat().st_size for path in (tmp_path / "c").iterdir()))
    go_on.set()
    for thread in threads:
        thread.join()
    kept = [path.stat().st_size for path in (tmp_path / "c").iterdir()]
    assert kept == [300] * 3
    assert most == 300


def kept_part(n):
    return Part(f"observations/c/{n}/0", FileRecord(300, None))


def test_two_caches_of_one_folder_keep_to_one_limit(tmp_path):
    one, other = Cache(tmp_path / "c", 1000), Cache(tmp_path / "c/../c", 1000)
    for n in range(8):
        (one if n % 2 else other).put("0" * 64, kept_part(n), np.zeros(300, np.uint8))
        assert sum(path.stat().st_size for path in (tmp_path / "c").iterdir()) <= 1000


def test_what_fails_or_comes_twice_takes_no_room(tmp_path, monkeypatch):
    cache = Cache(tmp_path / "c", 1300)

    def full(fd, data, at):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr(disk, "write_all", full)
        for n in range(9):
            cache.put("0" * 64, kept_part(n), np.zeros(300, np.uint8))
    assert list((tmp_path / "c").iterdir()) == []
    for n in (0, 1, 2, 2, 2, 2):
        cache.put("0" * 64, kept_part(n), np.zeros(300, np.uint8))
    assert len(list((tmp_path / "c").iterdir())) == 3


def test_a_file_that_another_process_is_writing_is_left_alone_for_an_hour(tmp_path):
    (tmp_path / "c").mkdir()
    young, old = (tmp_path / f"c/{name}.part.1-1.writing" for name in "ab")
    for path in (young, old):
        path.write_bytes(bytes(400))
    os.utime(young, (time.time() - 60,) * 2)
    os.utime(old, (time.time() - 7200,) * 2)
    Cache(tmp_path / "c", 1000).put("0" * 64, kept_part(0), np.zeros(300, np.uint8))
    assert young.exists()
    assert not old.exists()


def test_a_cache_that_cannot_be_written_is_no_error(served, tmp_path):
    (tmp_path / "file").write_text("x")
    with open_store(AddressSource(f"{served[0]}/small.zarr", cache_dir=tmp_path / "file/c")) as store:
        assert store.verify().ok


def test_without_a_home_there_is_no_cache_and_it_works(served, monkeypatch):
    monkeypatch.setenv("ALBERTA_DATA_CACHE", "/proc/nowhere")
    with open_store(f"{served[0]}/small.zarr") as store:
        assert store.verify().ok


def test_files_come_ahead_of_the_reader(served):
    with open_store(AddressSource(f"{served[0]}/packed.zarr")) as store:
        store.read("observations", 0, 1)
        deadline = time.monotonic() + 5
        while "packed.zarr/observations/c/2/0" not in served[1].asked and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "packed.zarr/observations/c/1/0" in served[1].asked
    assert "packed.zarr/observations/c/2/0" in served[1].asked


def test_plain_xarray_opens_a_served_dataset_over_http(served):
    pytest.importorskip("aiohttp")
    xarray = pytest.importorskip("xarray")
    with xarray.open_zarr(f"{served[0]}/small.zarr", consolidated=True, chunks=None) as found:
        assert found["observations"].shape == (2000, 3)
        with open_store(f"{served[0]}/small.zarr") as store:
            assert (found["observations"].values == store.read("observations")).all()
