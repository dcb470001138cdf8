"""Packing: one file, the same bytes for the same dataset, itself a dataset; and back."""

import hashlib
import shutil
import stat
import subprocess
import sys
import zipfile

import pytest

from alberta_data.errors import ArgumentError, DamagedDatasetError, DestinationError, StorageError
from alberta_data.share import pack, unpack
from alberta_data.store import annotate, open_store
from tests.share.conftest import SHAPES, flip, is_whole
from tests.store.faults import failing_at, stopped_at


def root_id(path):
    with open_store(path) as store:
        return store.root.id


@pytest.mark.parametrize("shape", SHAPES)
def test_a_packed_dataset_is_a_dataset_and_unpacks_to_the_same_files(shape, made, tmp_path):
    packed = pack(made(shape), tmp_path / "d.zarr.zip")
    assert is_whole(packed)
    out = unpack(packed)
    assert out.path == tmp_path / "d.zarr"
    assert out.extra == ()
    assert out.id == root_id(made(shape))
    before = {p.relative_to(made(shape)): p.read_bytes() for p in made(shape).rglob("*") if p.is_file()}
    assert {p.relative_to(out.path): p.read_bytes() for p in out.path.rglob("*") if p.is_file()} == before
    assert not any(p.stat().st_mode & stat.S_IWUSR for p in out.path.rglob("*") if p.is_file())


@pytest.mark.parametrize("shape", SHAPES)
def test_packing_gives_the_same_bytes_whatever_the_folder_is_called_and_through_any_codec(shape, made, tmp_path):
    shutil.copytree(made(shape), tmp_path / "other name.zarr")
    one, other = pack(made(shape), tmp_path / "a.zip"), pack(tmp_path / "other name.zarr", tmp_path / "b.zip")
    assert one.read_bytes() == other.read_bytes()
    small = pack(made(shape), tmp_path / "s.zip", codec="small")
    assert is_whole(small)
    assert root_id(small) == root_id(one)
    assert pack(one, tmp_path / "s2.zip", codec="small").read_bytes() == small.read_bytes()
    assert pack(small, tmp_path / "c.zip", codec=SHAPES[shape].codec or "none").read_bytes() == one.read_bytes()


def test_the_bytes_of_a_packed_dataset_never_change(made, tmp_path):
    digest = hashlib.sha256(pack(made("tiny"), tmp_path / "d.zip").read_bytes()).hexdigest()
    assert digest == "961e04abd6810523f8efcdf0652b828707a0630890191e8a21bc94405e732b8e"


def test_other_tools_read_a_packed_dataset(made, tmp_path):
    zarr = pytest.importorskip("zarr")
    packed = pack(made("small"), tmp_path / "d.zarr.zip")
    with zarr.storage.ZipStore(packed, mode="r") as store:
        rows = zarr.open_group(store, mode="r")["observations"][:]
    with open_store(made("small")) as ours:
        assert (rows == ours.read("observations")).all()
    assert zipfile.ZipFile(packed).testzip() is None


def test_the_usual_name_is_the_datasets_with_zip_after_it_and_a_name_is_a_file_not_a_folder(copied, tmp_path):
    path = copied("tiny")
    assert pack(path) == path.with_name("tiny.zarr.zip")
    assert pack(path, tmp_path / "x.zip").is_file()
    with pytest.raises(ArgumentError, match="path must be given"):
        pack(tmp_path / "x.zip")


def test_packing_again_finds_it_there_and_replaces_nothing_else(copied, made, tmp_path):
    path, packed = copied("tiny"), tmp_path / "d.zip"
    pack(path, packed)
    inode = packed.stat().st_ino
    assert pack(path, packed).stat().st_ino == inode
    with pytest.raises(DestinationError, match="holds a packed dataset"):
        pack(made("small"), packed)
    annotate(path, {"title": "other"})
    with pytest.raises(DestinationError, match="--overwrite"):
        pack(path, packed)
    assert pack(path, packed, overwrite=True).stat().st_ino != inode
    for what in ("file", "folder", "link"):
        place = tmp_path / what
        {"file": lambda p: p.write_text("mine"), "folder": lambda p: p.mkdir(), "link": lambda p: p.symlink_to(packed)}[
            what
        ](place)
        with pytest.raises(DestinationError, match="take another name"):
            pack(path, place, overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("codec", [None, "small"])
def test_a_damaged_dataset_is_not_packed_and_nothing_is_left(shape, codec, copied, tmp_path):
    path = copied(shape)
    name = "flags" if shape == "leafy" else "observations"
    flip(sorted((path / name / "c").rglob("*"))[-1])
    with pytest.raises(DamagedDatasetError, match=name):
        pack(path, tmp_path / "d.zip", codec=codec)
    assert [p.name for p in tmp_path.iterdir()] == ["copies"]


def test_a_chunk_of_another_seed_is_not_packed_where_leaves_reach_over_chunks(copied, tmp_path, record_property):
    record_property("T7", 1)
    path = copied("leafy")
    SHAPES["leafy"].but(seed=1).write(tmp_path / "other.zarr")
    shutil.copy(tmp_path / "other.zarr/flags/c/3", path / "flags/c/3")
    with pytest.raises(DamagedDatasetError, match="flags"):
        pack(path, tmp_path / "d.zip")
    assert not (tmp_path / "d.zip").exists()


def test_packing_stopped_at_any_operation_leaves_nothing_or_all(made, tmp_path, unsynced, record_property):
    whole, number = pack(made("tiny"), tmp_path / "whole.zip").read_bytes(), 0
    while True:
        path = tmp_path / str(number) / "d.zip"
        stopped = stopped_at(number, lambda path=path: pack(made("tiny"), path))
        assert not path.exists() or path.read_bytes() == whole
        assert pack(made("tiny"), path).read_bytes() == whole
        assert [p.name for p in path.parent.iterdir()] == ["d.zip"]
        if not stopped:
            break
        number += 1
    record_property("T1", number)
    assert number > 20


@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EACCES", "short"])
def test_packing_on_a_failing_disk_ends_with_one_line_and_leaves_nothing(
    kind, made, tmp_path, unsynced, record_property
):
    whole, failures = pack(made("tiny"), tmp_path / "whole.zip").read_bytes(), []
    tried = 0
    for number in range(0, 60, 7):
        path = tmp_path / str(number) / "d.zip"
        faults, seen = failing_at(number, kind, False)
        try:
            with faults:
                pack(made("tiny"), path)
        except StorageError as err:
            failures.append((str(err), path.exists()))
            tried += 1
        else:
            tried += len(seen) <= max(seen)
        assert pack(made("tiny"), path).read_bytes() == whole
    record_property("T4", tried)
    assert len(failures) > 3 or kind == "short"
    assert not any(left or "\n" in said for said, left in failures)


def test_a_file_that_a_killed_process_left_is_taken_away_and_one_in_use_is_not(made, tmp_path):
    import fcntl

    left = tmp_path / "d.zip.partial"
    left.write_bytes(b"half")
    with left.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DestinationError, match="in use"):
            pack(made("tiny"), tmp_path / "d.zip")
    assert is_whole(pack(made("tiny"), tmp_path / "d.zip"))
    assert not left.exists()


def test_unpacking_twice_is_refused_and_overwrite_replaces_our_own_alone(made, tmp_path):
    packed = pack(made("tiny"), tmp_path / "d.zip")
    unpack(packed, tmp_path / "u.zarr")
    with pytest.raises(DestinationError, match="this very dataset"):
        unpack(packed, tmp_path / "u.zarr")
    assert is_whole(unpack(packed, tmp_path / "u.zarr", overwrite=True).path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("x")
    with pytest.raises(DestinationError, match="another folder"):
        unpack(packed, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine/thesis.tex").read_text() == "x"
    with pytest.raises(ArgumentError, match="destination must be given"):
        unpack(packed.rename(tmp_path / "nameless"))


def test_unpacking_stopped_at_any_operation_leaves_nothing_or_all(made, tmp_path, unsynced, record_property):
    packed, number = pack(made("tiny"), tmp_path / "whole.zip"), 0
    while True:
        path = tmp_path / str(number) / "d.zarr"
        path.parent.mkdir()
        stopped = stopped_at(number, lambda path=path: unpack(packed, path))
        assert not path.exists() or is_whole(path)
        if not path.exists():
            unpack(packed, path)
        assert is_whole(path)
        assert [p.name for p in path.parent.iterdir()] == ["d.zarr"]
        if not stopped:
            break
        number += 4
    record_property("T1", number // 4)
    assert number > 50


def test_packing_and_unpacking_need_no_jax(made, tmp_path):
    code = (
        "import sys; from alberta_data.share import pack, unpack; "
        f"unpack(pack({str(made('tiny'))!r}, {str(tmp_path / 'd.zip')!r}), {str(tmp_path / 'd.zarr')!r}); "
        "assert 'jax' not in sys.modules and 'zarr' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_more_than_65535_files_are_packed_and_read(tmp_path):
    from alberta_data.share.archives import ArchiveWriter
    from alberta_data.store import disk
    from alberta_data.store.zipped import ArchiveSource

    path = tmp_path / "many.zip"
    fd = disk.create(path)
    writer = ArchiveWriter(fd)
    for number in range(66_000):
        writer.add(f"d/{number}", b"x")
    writer.add("zarr.json", b"{}")
    writer.finish()
    disk.close(fd)
    source = ArchiveSource(path)
    assert source.size("d/65999") == 1
    assert len(zipfile.ZipFile(path).infolist()) == 66_001


def test_an_offset_beyond_four_gibibytes_is_written_and_read(tmp_path, monkeypatch):
    from alberta_data.share import archives
    from alberta_data.store import disk

    path = tmp_path / "far.zip"
    fd = disk.create(path)
    writer = archives.ArchiveWriter(fd)
    writer._end = 2**32 + 5  # A hole stands for the files before.
    writer.add("zarr.json", b"{}")
    writer.finish()
    disk.close(fd)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("zarr.json") == b"{}"
