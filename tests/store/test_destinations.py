"""T14 and T17: what lies at a destination is left alone, two writers do not meet, readers see all or nothing."""

import os
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest

from alberta_data.errors import (
    AlbertaDataError,
    ArgumentError,
    DamagedDatasetError,
    DestinationError,
    IncompleteDatasetError,
    StorageError,
)
from alberta_data.store import delete_dataset, open_store
from tests.store.made import PACKED, SMALL, TINY


def everything_in(folder: Path):
    """Return path → kind, permissions, content of all that lies in a folder."""
    found = {}
    for entry in sorted(folder.rglob("*")):
        mode = entry.lstat().st_mode
        if entry.is_symlink():
            found[str(entry)] = (mode, os.readlink(entry))
        else:
            found[str(entry)] = (mode, entry.read_bytes() if entry.is_file() else None)
    return found


def a_zarr_group(path, attributes):
    import zarr

    group = zarr.open_group(str(path), mode="w", attributes=attributes)
    group.create_array("observations", data=np.arange(6.0))


TAKEN = {
    "a file": lambda path: path.write_text("mine"),
    "an empty file": lambda path: path.touch(),
    "an empty folder": lambda path: path.mkdir(),
    "a foreign folder": lambda path: (path.mkdir(), (path / "thesis.tex").write_text("mine")),
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link to a folder": lambda path: (path.with_name("real").mkdir(), path.symlink_to("real")),
    "a link to a dataset of ours": lambda path: (TINY.write(path.with_name("real")), path.symlink_to("real")),
    "a pipe": os.mkfifo,
    "another tool's store": lambda path: a_zarr_group(path, {}),
    "another tool's store with our key": lambda path: a_zarr_group(path, {"alberta_data": "mine"}),
    "a v2 store": lambda path: (path.mkdir(), (path / ".zgroup").write_text('{"zarr_format":2}')),
    "a folder in the unfinished one's place": lambda path: (
        path.with_name("d.zarr.partial").mkdir(),
        (path.with_name("d.zarr.partial") / "thesis.tex").write_text("mine"),
    ),
    "a file in the unfinished one's place": lambda path: path.with_name("d.zarr.partial").write_text("mine"),
    "a link in the unfinished one's place": lambda path: path.with_name("d.zarr.partial").symlink_to("/"),
}


@pytest.mark.parametrize("overwrite", [False, True], ids=["", "overwrite"])
@pytest.mark.parametrize("what", TAKEN)
def test_a_destination_that_is_not_ours_is_refused_and_left_alone(what, overwrite, tmp_path, record_property):
    record_property("T14", 1)
    TAKEN[what](tmp_path / "d.zarr")
    before = everything_in(tmp_path)
    with pytest.raises(DestinationError) as caught:
        SMALL.write(tmp_path / "d.zarr", overwrite=overwrite)
    assert "\n" not in str(caught.value)
    left = everything_in(tmp_path)
    left.pop(str(tmp_path / "d.zarr.partial"), None) if "unfinished" not in what else None
    assert left == before


def test_another_dataset_of_ours_is_refused_with_the_field_that_differs(tmp_path, record_property):
    record_property("T14", 1)
    TINY.write(tmp_path / "d.zarr")
    before = everything_in(tmp_path)
    with pytest.raises(DestinationError, match=r"spec\.seed is 0 there, 1 asked for"):
        TINY.but(seed=1).write(tmp_path / "d.zarr")
    assert everything_in(tmp_path) == before


def test_the_same_dataset_is_there_already_and_stays_as_it_is(tmp_path):
    first = TINY.write(tmp_path / "d.zarr")
    before = everything_in(tmp_path)
    with TINY.begin(tmp_path / "d.zarr") as writer:
        assert writer.already_there
        assert writer.position.step == TINY.steps
        assert writer.finish() == tmp_path / "d.zarr"
        assert writer.root.id == first.id
    assert everything_in(tmp_path) == before


def test_the_same_dataset_with_a_file_missing_is_damage(tmp_path):
    TINY.write(tmp_path / "d.zarr")
    (tmp_path / "d.zarr/targets/c/1/0").unlink()
    with pytest.raises(DamagedDatasetError, match="targets/c/1/0"):
        TINY.write(tmp_path / "d.zarr")
    TINY.write(tmp_path / "d.zarr", overwrite=True)
    with open_store(tmp_path / "d.zarr") as store:
        assert store.verify().ok


def test_a_dataset_with_something_of_the_users_in_it_is_not_replaced(tmp_path, record_property):
    record_property("T14", 1)
    TINY.write(tmp_path / "d.zarr")
    (tmp_path / "d.zarr/notes.txt").write_text("mine")
    with pytest.raises(DestinationError, match=r"notes\.txt"):
        TINY.but(seed=1).write(tmp_path / "d.zarr", overwrite=True)
    assert (tmp_path / "d.zarr/notes.txt").read_text() == "mine"


def test_a_read_only_place_is_refused(tmp_path, monkeypatch, record_property):
    record_property("T14", 2)
    TINY.write(tmp_path / "d.zarr")
    before = everything_in(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode, **more: False)
    with pytest.raises(DestinationError, match="read-only"):
        TINY.but(seed=1).write(tmp_path / "d.zarr", overwrite=True)
    assert everything_in(tmp_path) == before
    monkeypatch.setattr(os, "mkdir", lambda *given: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(StorageError, match="Permission denied"):
        TINY.write(tmp_path / "new.zarr")


def test_a_dataset_whose_root_is_damaged_is_ours_to_replace(tmp_path, record_property):
    record_property("T14", 1)
    TINY.write(tmp_path / "d.zarr")
    root = tmp_path / "d.zarr/zarr.json"
    root.chmod(0o644)
    root.write_bytes(root.read_bytes()[:-1])
    with pytest.raises(DestinationError, match="damaged"):
        TINY.write(tmp_path / "d.zarr")
    TINY.write(tmp_path / "d.zarr", overwrite=True)
    with open_store(tmp_path / "d.zarr") as store:
        assert store.verify().ok


def test_a_replaced_dataset_leaves_nothing_behind(tmp_path):
    TINY.write(tmp_path / "d.zarr")
    root = TINY.but(seed=1).write(tmp_path / "d.zarr", overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.zarr"]
    with open_store(tmp_path / "d.zarr") as store:
        assert store.root.id == root.id


def test_missing_folders_above_a_destination_are_made(tmp_path):
    TINY.write(tmp_path / "a/b/d.zarr")
    assert (tmp_path / "a/b/d.zarr/zarr.json").is_file()


def test_files_are_read_only_and_the_same_command_leaves_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        SMALL.write(tmp_path / name)
    one, two = (
        {str(p).replace(name, ""): v for p, v in everything_in(tmp_path / name).items()} for name in ("one", "two")
    )
    assert one == two
    assert all(not mode & 0o222 for mode, content in one.values() if content is not None)


def test_a_full_disk_is_told_before_anything_is_made(tmp_path, monkeypatch):
    from alberta_data.store import disk

    monkeypatch.setattr(disk, "free_bytes", lambda path: 1000)
    with pytest.raises(StorageError, match=r"needs \d+ bytes, got 1000 bytes free"):
        SMALL.write(tmp_path / "d.zarr")
    assert not list(tmp_path.iterdir())


def test_datasets_are_deleted_and_nothing_else_is(tmp_path):
    TINY.write(tmp_path / "d.zarr")
    with TINY.begin(tmp_path / "half.zarr"):
        pass
    delete_dataset(tmp_path / "d.zarr")
    delete_dataset(tmp_path / "half.zarr.partial")
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    for path, error in ((tmp_path / "mine", DestinationError), (tmp_path / "nothing", AlbertaDataError)):
        with pytest.raises(error):
            delete_dataset(path)
    assert (tmp_path / "mine").is_dir()


def test_a_folder_that_a_writer_works_in_is_in_use(tmp_path, record_property):
    record_property("T17", 2)
    with SMALL.begin(tmp_path / "d.zarr") as writer:
        with pytest.raises(DestinationError, match="in use"):
            SMALL.begin(tmp_path / "d.zarr")
        with pytest.raises(DestinationError, match="in use"):
            delete_dataset(tmp_path / "d.zarr.partial")
        SMALL.append_all(writer)
        writer.finish()


def in_child(work):
    """Do some work in a process of its own and return its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 70
        try:
            work()
            code = 0
        except AlbertaDataError as err:
            code = err.exit_code
        finally:
            os._exit(code)
    return child


def exit_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def two_writers(tmp_path, rounds, record_property):
    outcomes = set()
    for number in range(rounds):
        path = tmp_path / f"{number}.zarr"
        recipe = PACKED.but(seed=number)
        pair = sorted(exit_of(child) for child in [in_child(lambda p=path, r=recipe: r.write(p)) for _ in range(2)])
        # The second one came while the first was at work, or found it finished.
        assert pair in ([0, 2], [0, 0])
        outcomes.add(pair[1])
        with open_store(path) as store:
            assert store.verify().ok
        assert not path.with_name(f"{path.name}.partial").exists()
    record_property("T17", rounds)
    return outcomes


def test_of_two_writers_on_one_destination_one_finishes(tmp_path, record_property):
    assert two_writers(tmp_path, 10, record_property) <= {0, 2}


@pytest.mark.torture
def test_of_two_writers_on_one_destination_one_finishes_every_time(tmp_path, unsynced, record_property):
    assert two_writers(tmp_path, 300, record_property) <= {0, 2}


def readers_during_writes(tmp_path, rounds, record_property):
    path = tmp_path / "d.zarr"
    seen = set()
    child = in_child(lambda: [SMALL.but(seed=seed).write(path, overwrite=True) for seed in range(rounds)])
    while True:
        try:
            with open_store(path) as store:
                seen.add(store.root.spec["seed"])
                first = store.read("observations", 0, 100)
                seed = store.root.spec["seed"]
                assert (first == SMALL.but(seed=seed).rows(SMALL.arrays[0], 0, 100)).all()
        except ArgumentError:
            seen.add("nothing")
        except IncompleteDatasetError:
            seen.add("unfinished")
        except DamagedDatasetError:
            # The dataset was replaced, and its files removed, under the reader.
            seen.add("replaced")
        if os.waitpid(child, os.WNOHANG)[0]:
            break
    with open_store(path) as store:
        assert store.root.spec["seed"] == rounds - 1
        assert store.verify().ok
    record_property("T17", rounds)
    return seen


def test_readers_during_writes_see_a_whole_dataset_or_none(tmp_path, record_property):
    assert readers_during_writes(tmp_path, 10, record_property) & set(range(10))


@pytest.mark.torture
def test_readers_during_many_writes_see_a_whole_dataset_or_none(tmp_path, unsynced, record_property):
    assert readers_during_writes(tmp_path, 300, record_property) & set(range(300))


def test_an_unfinished_dataset_is_called_that_under_both_names(tmp_path):
    with SMALL.begin(tmp_path / "d.zarr") as writer:
        SMALL.append_all(writer, 1000)
    for name in ("d.zarr", "d.zarr.partial"):
        with pytest.raises(IncompleteDatasetError, match="not finished"):
            open_store(tmp_path / name)
    assert stat.S_ISDIR((tmp_path / "d.zarr.partial").stat().st_mode)
