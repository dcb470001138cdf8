"""T8 and T1 for fetch: whole and checked, or an error with address and status and nothing that looks whole."""

import os
import shutil

import pytest

from alberta_data.errors import (
    ArgumentError,
    DamagedDatasetError,
    DestinationError,
    IncompleteDatasetError,
    RefusedError,
    StorageError,
)
from alberta_data.share import fetch, pack
from alberta_data.store import addresses, annotate, open_store, web
from tests.share.conftest import SHAPES, flip, is_whole
from tests.share.servers import serving
from tests.store.faults import failing_at, stopped_at


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path, unsynced):
    monkeypatch.setattr(addresses, "WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(addresses, "DENIED_WAITS", (0.01, 0.01))
    monkeypatch.setenv("ALBERTA_DATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def served(made, tmp_path):
    """Yield the address of a folder with every dataset in it, and its faults."""
    made("small"), made("packed"), made("leafy"), made("tiny")
    with serving(made("small").parent) as found:
        yield found


def identity(path):
    with open_store(path) as store:
        return store.root.id


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fetched_dataset_is_the_same_files(shape, served, made, tmp_path):
    found = fetch(f"{served[0]}/{shape}.zarr", tmp_path / "d.zarr", identity(made(shape)))
    assert found.id == identity(made(shape))
    assert is_whole(found.path)
    before = {p.relative_to(made(shape)): p.read_bytes() for p in made(shape).rglob("*") if p.is_file()}
    assert {p.relative_to(found.path): p.read_bytes() for p in found.path.rglob("*") if p.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ["d.zarr"]
    asked = len(served[1].asked)
    assert fetch(f"{served[0]}/{shape}.zarr", tmp_path / "d.zarr").files == 0
    assert served[1].asked[asked:] == [f"{shape}.zarr/zarr.json"]


FAULTS = [
    *(401, 403, 404, 410, 416, 429, 500, 502, 503),
    *("reset", "reset in the body", "stall", "silent", "short", "short without a length", "short with its own length"),
    *("long", "long without a length", "empty", "html", "gzip", "garbage", "loop"),
]


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("where", ["observations/c/3/0", "targets/zarr.json"])
def test_a_fault_for_one_file_is_tried_again_and_then_told_with_the_address(
    kind, where, served, tmp_path, record_property
):
    record_property("T8", 1)
    url, faults = served
    path = f"small.zarr/{where}"
    faults.plan(path, kind)
    with pytest.raises(StorageError) as raised:
        fetch(f"{url}/small.zarr", tmp_path / "d.zarr", timeout=0.3)
    assert raised.value.exit_code == 6
    message = str(raised.value)
    assert f"{url}/{path}" in message
    assert "\n" not in message
    if isinstance(kind, int):
        assert f"answered {kind} " in message
    assert faults.asked.count(path) >= 3
    assert os.listdir(tmp_path) == ["d.zarr.partial"]
    with pytest.raises(IncompleteDatasetError):
        open_store(tmp_path / "d.zarr")
    faults.plan(path, None, 0)
    there = {str(p.relative_to(tmp_path / "d.zarr.partial")) for p in (tmp_path / "d.zarr.partial").rglob("*")}
    faults.asked.clear()
    assert is_whole(fetch(f"{url}/small.zarr", tmp_path / "d.zarr").path)
    assert os.listdir(tmp_path) == ["d.zarr"]
    assert not {f"small.zarr/{path}" for path in there} & set(faults.asked)


@pytest.mark.parametrize("kind", [*FAULTS, "html of the right size", "flipped"])
def test_a_fault_that_passes_is_not_noticed(kind, served, tmp_path, record_property):
    record_property("T8", 3 if kind == "flipped" else 4)
    url, faults = served
    for path in ("zarr.json", "observations/c/3/0", "checkpoints/key/c/0/0", "rewards/zarr.json"):
        faults.plan(f"small.zarr/{path}", kind, 1)
    if kind == "flipped":
        faults.plan("small.zarr/zarr.json", None, 0)
    if kind == "html of the right size":
        faults.plan("small.zarr/zarr.json", "html", 1)
    assert is_whole(fetch(f"{url}/small.zarr", tmp_path / "d.zarr", timeout=0.3).path)


@pytest.mark.parametrize("shape", ["small", "packed", "leafy"])
@pytest.mark.parametrize("kind", ["flipped", "html of the right size"])
def test_wrong_bytes_of_the_right_size_are_damage_and_get_no_name(shape, kind, served, tmp_path, record_property):
    record_property("T8", 1)
    url, faults = served
    name = "flags/c/2" if shape == "leafy" else "observations/c/2/0"
    faults.plan(f"{shape}.zarr/{name}", kind)
    with pytest.raises(DamagedDatasetError, match=name):
        fetch(f"{url}/{shape}.zarr", tmp_path / "d.zarr")
    assert not (tmp_path / "d.zarr").exists()
    assert not (tmp_path / "d.zarr.partial" / name).exists()


def test_a_chunk_of_another_dataset_is_found_by_the_leaves_that_reach_over_it(
    served, copied, tmp_path, record_property
):
    record_property("T7", 1)
    path = copied("leafy")
    SHAPES["leafy"].but(seed=1).write(tmp_path / "other.zarr")
    shutil.copy(tmp_path / "other.zarr/flags/c/3", path / "flags/c/3")
    with pytest.raises(DamagedDatasetError, match="flags"), serving(path.parent) as (url, _):
        fetch(f"{url}/leafy.zarr", tmp_path / "d.zarr")
    assert not (tmp_path / "d.zarr").exists()


@pytest.mark.parametrize("kind", [403, 404, 500, "empty", "html", "html of the right size", "short", "silent"])
def test_an_address_with_no_dataset_is_told_and_nothing_is_kept(kind, served, tmp_path, record_property):
    record_property("T8", 1)
    served[1].plan("small.zarr/zarr.json", kind)
    with pytest.raises(StorageError, match=r"small\.zarr/zarr\.json"):
        fetch(f"{served[0]}/small.zarr", tmp_path / "d.zarr", timeout=0.3)
    assert os.listdir(tmp_path) == []


def test_a_root_that_is_another_format_or_damaged_is_refused(copied, tmp_path):
    path = copied("tiny")
    whole = (path / "zarr.json").read_bytes()
    with serving(path.parent) as (url, _):
        (path / "zarr.json").write_text('{"zarr_format":2}')
        with pytest.raises(RefusedError):
            fetch(f"{url}/tiny.zarr", tmp_path / "d.zarr")
        (path / "zarr.json").write_bytes(whole.replace(b'"seed":0', b'"seed":1'))
        with pytest.raises(DamagedDatasetError):
            fetch(f"{url}/tiny.zarr", tmp_path / "d.zarr")
    assert not (tmp_path / "d.zarr.partial").exists()


def test_another_id_than_the_one_named_is_refused_before_anything_comes(served, made, tmp_path):
    for place in (f"{served[0]}/small.zarr", made("small"), pack(made("small"), tmp_path / "s.zip")):
        with pytest.raises(RefusedError, match="must have the id"):
            fetch(place, tmp_path / "d.zarr", "0" * 64)
    assert os.listdir(tmp_path) == ["s.zip"]
    with pytest.raises(ArgumentError, match="all 64 count"):
        fetch(f"{served[0]}/small.zarr", tmp_path / "d.zarr", "12345678")


def test_an_interrupted_fetch_goes_on_and_a_damaged_file_comes_again(served, tmp_path):
    url, faults = served
    faults.plan("small.zarr/targets/c/7/0", 500)
    with pytest.raises(StorageError):
        fetch(f"{url}/small.zarr", tmp_path / "d.zarr", workers=1)
    faults.plan("small.zarr/targets/c/7/0", None, 0)
    flip(tmp_path / "d.zarr.partial/observations/c/2/0", 5)
    (tmp_path / "d.zarr.partial/observations/c/3/0").unlink()
    (tmp_path / "d.zarr.partial/observations/c/4/0").unlink()
    (tmp_path / "d.zarr.partial/observations/c/4/0").mkdir()
    (tmp_path / "d.zarr.partial/observations/c/stray").write_text("x")
    faults.asked.clear()
    assert is_whole(fetch(f"{url}/small.zarr", tmp_path / "d.zarr").path)
    came = {path.removeprefix("small.zarr/") for path in faults.asked}
    assert came == {"zarr.json", "observations/c/2/0", "observations/c/3/0", "observations/c/4/0", "targets/c/7/0"}


@pytest.mark.parametrize("shape", ["small", "packed", "leafy"])
def test_a_finished_dataset_that_was_damaged_is_mended(shape, served, tmp_path):
    url, faults = served
    path = fetch(f"{url}/{shape}.zarr", tmp_path / "d.zarr").path
    name = "flags/c/2" if shape == "leafy" else "observations/c/2/0"
    flip(path / name, 5)
    (path / name.replace("2", "1")).unlink()
    faults.asked.clear()
    found = fetch(f"{url}/{shape}.zarr", path)
    assert found.files == len(set(faults.asked)) - 1
    assert found.files == 2
    assert is_whole(path)


def test_where_a_leaf_reaches_over_files_and_is_wrong_all_of_them_come_again(served, tmp_path):
    path = fetch(f"{served[0]}/leafy.zarr", tmp_path / "d.zarr").path
    SHAPES["leafy"].but(seed=1).write(tmp_path / "other.zarr")
    (path / "flags/c/2").unlink()
    shutil.copy(tmp_path / "other.zarr/flags/c/2", path / "flags/c/2")
    assert fetch(f"{served[0]}/leafy.zarr", path).files >= 8
    assert is_whole(path)


def test_a_dataset_in_another_form_is_the_same_and_stays(served, made, tmp_path):
    path = tmp_path / "d.zarr"
    SHAPES["small"].but(codec="small").write(path)
    assert fetch(f"{served[0]}/small.zarr", path).files == 0
    flip(path / "observations/c/2/0", 9)
    with pytest.raises(DamagedDatasetError, match="another form"):
        fetch(f"{served[0]}/small.zarr", path)


def test_what_lies_at_the_destination_is_not_touched(served, made, tmp_path, record_property):
    record_property("T14", 5)
    url = f"{served[0]}/small.zarr"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    SHAPES["tiny"].write(tmp_path / "other.zarr")
    for name in ("folder", "file", "link", "other.zarr"):
        with pytest.raises(DestinationError):
            fetch(url, tmp_path / name)
    assert (tmp_path / "folder/thesis.tex").read_text() == "x"
    assert is_whole(fetch(url, tmp_path / "other.zarr", overwrite=True).path)
    assert identity(tmp_path / "other.zarr") == identity(made("small"))
    with pytest.raises(DestinationError):
        fetch(url, tmp_path / "folder", overwrite=True)


def test_the_beginning_of_another_dataset_is_not_gone_on_with(served, tmp_path):
    url, faults = served
    faults.plan("small.zarr/targets/c/7/0", 500)
    with pytest.raises(StorageError):
        fetch(f"{url}/small.zarr", tmp_path / "d.zarr")
    with pytest.raises(DestinationError, match="another dataset"):
        fetch(f"{url}/tiny.zarr", tmp_path / "d.zarr")
    with SHAPES["tiny"].begin(tmp_path / "g.zarr") as writer:
        SHAPES["tiny"].append_all(writer, 1)
    with pytest.raises(DestinationError, match="must be free"):
        fetch(f"{url}/tiny.zarr", tmp_path / "g.zarr")


def test_two_at_once_at_one_destination_do_not_disturb_each_other(served, tmp_path, record_property):
    record_property("T17", 1)
    from alberta_data.share.landing import Landing

    with open_store(f"{served[0]}/tiny.zarr") as store:
        landing = Landing(tmp_path / "d.zarr", store.root)
    with pytest.raises(DestinationError, match="in use"):
        fetch(f"{served[0]}/tiny.zarr", tmp_path / "d.zarr")
    landing.release()
    assert is_whole(fetch(f"{served[0]}/tiny.zarr", tmp_path / "d.zarr").path)


@pytest.mark.parametrize("way", ["folder", "packed", "file://", "packed file://"])
def test_a_folder_and_a_packed_file_of_this_machine_are_fetched_too(way, made, tmp_path):
    place = pack(made("small"), tmp_path / "s.zip") if "packed" in way else made("small")
    found = fetch(f"file://{place}" if "file" in way else place, tmp_path / "d.zarr")
    assert is_whole(found.path)


def test_a_packed_file_comes_over_http_is_gone_on_with_and_unpacked(made, tmp_path):
    (tmp_path / "s").mkdir()
    packed = pack(made("small"), tmp_path / "s/small.zarr.zip")
    with serving(packed.parent) as (url, faults):
        faults.plan("small.zarr.zip", "reset in the body", 1)
        found = fetch(f"{url}/small.zarr.zip", tmp_path / "d.zarr")
        assert is_whole(found.path)
        assert any("Range" in headers for headers in faults.headers)
        faults.plan("small.zarr.zip", "flipped")
        with pytest.raises(RefusedError):
            fetch(f"{url}/small.zarr.zip", tmp_path / "e.zarr")
        faults.plan("small.zarr.zip", 404)
        with pytest.raises(StorageError, match="404"):
            fetch(f"{url}/small.zarr.zip", tmp_path / "f.zarr")
    assert sorted(os.listdir(tmp_path)) == ["d.zarr", "s"]


def test_the_usual_name_is_the_address_last_one_in_the_data_folder(served, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERTA_DATA_DIR", str(tmp_path / "data"))
    assert fetch(f"{served[0]}/tiny.zarr/").path == tmp_path / "data/tiny.zarr"
    assert fetch(f"{served[0]}/small.zarr?token=1", data_dir=tmp_path / "x").path == tmp_path / "x/small.zarr"


def test_annotated_content_comes_with_its_root(served, copied, tmp_path):
    path = copied("tiny")
    annotate(path, {"title": "renamed"})
    with serving(path.parent) as (url, _):
        found = fetch(f"{url}/tiny.zarr", tmp_path / "d.zarr")
    with open_store(found.path) as store:
        assert store.root.about == {"title": "renamed"}


def stop_everywhere(work, path, record_property, each=1):
    number = 0
    while True:
        stopped = stopped_at(number, lambda: work(path))
        assert not path.exists() or is_whole(path)
        work(path)
        assert is_whole(path)
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        shutil.rmtree(path)
        if not stopped:
            record_property("T1", number // each)
            return number
        number += each


def test_fetching_stopped_at_any_operation_leaves_nothing_or_a_whole_and_goes_on(made, tmp_path, record_property):
    assert stop_everywhere(lambda path: fetch(made("tiny"), path), tmp_path / "f/d.zarr", record_property) > 60


def test_fetching_over_http_stopped_now_and_then_goes_on(served, tmp_path, record_property):
    url = f"{served[0]}/tiny.zarr"
    assert stop_everywhere(lambda path: fetch(url, path, workers=2), tmp_path / "f/d.zarr", record_property, 9) > 60


def test_fetching_over_another_dataset_stopped_at_any_operation_leaves_one_of_them(made, tmp_path, record_property):
    path, number = tmp_path / "f/d.zarr", 0
    while True:
        shutil.copytree(made("packed"), path)
        stopped = stopped_at(number, lambda: fetch(made("tiny"), path, overwrite=True))
        if path.exists():
            with open_store(path) as store:
                assert not store.verify().damages
        fetch(made("tiny"), path, overwrite=True)
        assert identity(path) == identity(made("tiny"))
        assert is_whole(path)
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        shutil.rmtree(path)
        if not stopped:
            break
        number += 11
    record_property("T1", number // 11)
    assert number > 60


def test_mending_stopped_at_any_operation_can_be_ended(made, tmp_path, record_property):
    number, path = 0, tmp_path / "f/d.zarr"
    while True:
        shutil.copytree(made("tiny"), path)
        flip(path / "observations/c/1/0", 3)
        stopped = stopped_at(number, lambda: fetch(made("tiny"), path))
        fetch(made("tiny"), path)
        with open_store(path) as store:
            report = store.verify()
        assert not report.damages
        shutil.rmtree(path)
        if not stopped:
            break
        number += 1
    record_property("T1", number)
    assert number >= 5


@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EACCES", "short"])
def test_fetching_to_a_failing_disk_ends_with_one_line_and_can_be_gone_on_with(kind, made, tmp_path, record_property):
    failures, tried = [], 0
    for number in range(0, 90, 9):
        path = tmp_path / str(number) / "d.zarr"
        faults, seen = failing_at(number, kind, number % 2 == 0)
        try:
            with faults:
                fetch(made("tiny"), path)
        except StorageError as err:
            failures.append(str(err))
            tried += 1
        else:
            tried += len(seen) <= max(seen)
        assert not path.exists() or is_whole(path)
        fetch(made("tiny"), path)
        assert is_whole(path)
    record_property("T4", tried)
    assert failures or kind == "short"
    assert not any("\n" in said for said in failures)


def test_a_disk_that_is_too_small_is_said_before_anything_comes(served, tmp_path, monkeypatch):
    from alberta_data.store import disk

    monkeypatch.setattr(disk, "free_bytes", lambda path: 1000)
    with pytest.raises(StorageError, match="1000 bytes free"):
        fetch(f"{served[0]}/small.zarr", tmp_path / "d.zarr")


REFUSED = ["simplecache::s3://b/x", "s3://b/x::file:///etc", "zip://x::http://127.0.0.1/y", "filecache::http://h/x"]


@pytest.mark.parametrize("url", REFUSED)
def test_chains_of_addresses_are_refused(url, tmp_path):
    for act in (lambda: fetch(url, tmp_path / "d.zarr"), lambda: open_store(url)):
        with pytest.raises(RefusedError, match="chain"):
            act()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/x",
        "gopher://h/x",
        "data:/x",
        "http:///x",
        "http://h:99999/x",
        "http://h/a b",
        "file://h/x",
        "github://x",
    ],
)
def test_other_addresses_are_refused_by_name(url, tmp_path):
    with pytest.raises(ArgumentError):
        fetch(url, tmp_path / "d.zarr")


def test_a_redirect_is_followed_within_the_scheme_and_nowhere_else(served, tmp_path):
    url, faults = served
    faults.plan("small.zarr/zarr.json", "redirect")
    faults.redirect = f"{url}/tiny.zarr/zarr.json"
    with pytest.raises(StorageError):
        fetch(f"{url}/small.zarr", tmp_path / "d.zarr")
    for target in ("https://127.0.0.1/x", "file:///etc/passwd", "ftp://h/x", "gopher://h", "http://h:0/"):
        faults.redirect = target
        with pytest.raises(RefusedError, match="redirect"):
            fetch(f"{url}/small.zarr", tmp_path / "e.zarr")
    assert not (tmp_path / "e.zarr.partial").exists()


def test_a_redirect_into_the_local_network_is_refused_unless_asked_for(served, monkeypatch, made, tmp_path):
    url, faults = served
    with serving(made("small").parent, "127.0.0.2") as (inside, _):
        # One loopback address stands for a public one here.
        monkeypatch.setattr(web, "is_local", lambda ip: ip != "127.0.0.1")
        faults.plan("small.zarr/zarr.json", "redirect")
        faults.redirect = f"{inside}/small.zarr/zarr.json"
        with pytest.raises(RefusedError, match="local network"):
            fetch(f"{url}/small.zarr", tmp_path / "d.zarr")
        assert is_whole(fetch(f"{url}/small.zarr", tmp_path / "d.zarr", any_redirect=True).path)


@pytest.mark.parametrize(
    "ip", ["127.0.0.1", "127.8.8.8", "::1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "fe80::1%eth0", "0.0.0.0"]
)
def test_addresses_of_the_local_network_are_known(ip):
    assert web.is_local(ip)
    assert not web.is_local("93.184.216.34")


def test_user_password_and_query_are_sent_and_never_shown_or_stored(served, tmp_path, monkeypatch):
    url, faults = served
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    secret = url.replace("http://", "http://user:hunter2@") + "/small.zarr?token=hunter2"
    found = fetch(secret, tmp_path / "d.zarr")
    assert faults.headers[-1]["Authorization"].startswith("Basic ")
    assert not any(b"hunter2" in p.read_bytes() for p in found.path.rglob("*") if p.is_file())
    faults.plan("small.zarr/observations/c/3/0", 500)
    with pytest.raises(StorageError) as raised:
        fetch(secret, tmp_path / "e.zarr")
    assert "hunter2" not in str(raised.value)
    assert "user" not in str(raised.value)
    faults.plan("small.zarr/observations/c/3/0", None, 0)
    with open_store(secret) as store:
        assert "hunter2" not in store.name
        store.read("observations", 0, 10)
    left = [p for p in tmp_path.rglob("*") if p.is_file() and (b"hunter2" in p.read_bytes() or "hunter2" in str(p))]
    assert left == []


def test_a_password_does_not_follow_a_redirect_to_another_host(served, made, tmp_path):
    url, faults = served
    with serving(made("small").parent) as (other, others):
        faults.plan("small.zarr/zarr.json", "redirect")
        faults.redirect = f"{other}/small.zarr/zarr.json"
        fetch(url.replace("http://", "http://user:hunter2@") + "/small.zarr", tmp_path / "d.zarr")
        assert others.headers
        assert not any("Authorization" in headers for headers in others.headers)


def test_fetching_needs_no_jax_and_no_fsspec(served, tmp_path):
    import subprocess
    import sys

    url, path = f"{served[0]}/tiny.zarr", str(tmp_path / "d.zarr")
    code = (
        f"import sys; from alberta_data.share import fetch; fetch({url!r}, {path!r});"
        "assert not {'jax', 'zarr', 'fsspec'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_progress_ends_at_the_whole_size(served, tmp_path):
    told = []
    fetch(f"{served[0]}/small.zarr", tmp_path / "d.zarr", progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0
