"""A real S3 server on loopback: what is pushed is fetched again, read in place, and never mixed with another."""

import pytest

from alberta_data.dataset import list_datasets
from alberta_data.errors import (
    ArgumentError,
    DamagedDatasetError,
    DestinationError,
    RefusedError,
    StorageError,
    UnavailableError,
)
from alberta_data.share import fetch, pack, push
from alberta_data.store import addresses, annotate, open_store
from alberta_data.store.buckets import Bucket
from tests.share.conftest import flip, is_whole

moto_server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")

# botocore and aiohttp leave such to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def server():
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(server, monkeypatch, tmp_path, unsynced):
    import botocore.session

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
        "ALBERTA_DATA_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(addresses, "WAITS", (0.01, 0.01))
    monkeypatch.setattr(addresses, "DENIED_WAITS", (0.01,))
    client = botocore.session.get_session().create_client("s3")
    client.create_bucket(Bucket="team")
    yield "s3://team/data"
    for entry in client.list_objects_v2(Bucket="team").get("Contents", []):
        client.delete_object(Bucket="team", Key=entry["Key"])


def keys(url):
    return Bucket(url).sizes()


@pytest.mark.parametrize("shape", ["small", "packed", "leafy"])
def test_what_is_pushed_is_fetched_and_read_in_place(shape, made, bucket, tmp_path):
    url = f"{bucket}/{shape}.zarr"
    sent = push(made(shape), url)
    with open_store(made(shape)) as store:
        assert sent.id == store.root.id
        assert sent.files == len(store.root.files) + 1
        assert set(keys(url)) == {"zarr.json", *store.root.files}
    assert is_whole(fetch(url, tmp_path / "d.zarr", sent.id).path)
    with open_store(url) as store:
        assert store.verify().ok
        assert len(list(store.blocks())) > 0


def test_the_datasets_of_an_object_store_are_listed(made, bucket, tmp_path):
    assert push(made("small"), f"{bucket}/b.zarr").id
    push(made("tiny"), f"{bucket}/a b.zarr")
    Bucket(f"{bucket}/half.zarr").put("observations/c/0/0", b"x")
    Bucket(f"{bucket}/other").put("notes.txt", b"x")
    Bucket(bucket).put("p.zarr.zip", b"packed")
    with open_store(made("small")) as small, open_store(made("tiny")) as tiny:
        found = {entry.name: entry for entry in list_datasets(f"{bucket}/")}
        assert list(found) == ["a b.zarr", "b.zarr", "half.zarr", "p.zarr.zip"]
        assert (found["b.zarr"].id, found["a b.zarr"].id) == (small.root.id, tiny.root.id)
        assert found["b.zarr"].size == small.root.size + len(small.root_bytes)
        with open_store(found["a b.zarr"].path) as there:
            assert there.root.id == tiny.root.id
        assert "answered 404" in found["half.zarr"].error
        assert (found["p.zarr.zip"].size, "fetch" in found["p.zarr.zip"].error) == (6, True)
        steps = small.root.steps
        assert [entry.name for entry in list_datasets(bucket, min_steps=steps)] == ["b.zarr"]
    with pytest.raises(StorageError, match="404"):
        list_datasets("s3://nobody/data")


def test_pushing_again_sends_nothing_and_what_is_missing_is_sent(made, bucket):
    url = f"{bucket}/d.zarr"
    push(made("small"), url)
    assert push(made("small"), url).files == 0
    there = Bucket(url)
    there.remove("observations/c/2/0")
    there.put("targets/c/1/0", b"short")
    assert push(made("small"), url).files == 3
    assert open_store(url).verify().ok


def test_another_dataset_or_anything_else_there_is_left_alone(made, bucket):
    push(made("small"), f"{bucket}/d.zarr")
    with pytest.raises(DestinationError, match="must be free or hold this dataset"):
        push(made("tiny"), f"{bucket}/d.zarr")
    Bucket(f"{bucket}/mine").put("thesis.tex", b"x")
    with pytest.raises(DestinationError, match="other files"):
        push(made("tiny"), f"{bucket}/mine")
    Bucket(f"{bucket}/theirs").put("zarr.json", b"{}")
    with pytest.raises(DestinationError, match="something else"):
        push(made("tiny"), f"{bucket}/theirs")
    assert keys(f"{bucket}/mine") == {"thesis.tex": 1}
    assert keys(f"{bucket}/theirs") == {"zarr.json": 2}


def test_a_push_that_is_interrupted_leaves_no_dataset_and_goes_on(made, bucket, monkeypatch, tmp_path):
    url, put, count = f"{bucket}/d.zarr", Bucket.put, [0]

    def failing(self, path, data):
        count[0] += 1
        if count[0] > 9:
            raise self.failed(path, OSError("hunter2"))
        put(self, path, data)

    monkeypatch.setattr(Bucket, "put", failing)
    with pytest.raises(StorageError) as raised:
        push(made("small"), url, workers=1)
    assert "hunter2" not in str(raised.value)
    monkeypatch.setattr(Bucket, "put", put)
    assert "zarr.json" not in keys(url)
    with pytest.raises(StorageError, match="404"):
        open_store(url)
    with pytest.raises(DestinationError, match="beginning of another"):
        push(made("tiny"), url)
    assert push(made("small"), url).files == 36 - 8
    assert ".alberta-data-push" not in keys(url)
    assert is_whole(fetch(url, tmp_path / "d.zarr").path)


def test_a_damaged_dataset_is_not_sent(copied, bucket):
    path = copied("leafy")
    flip(path / "flags/c/5")
    with pytest.raises(DamagedDatasetError):
        push(path, f"{bucket}/d.zarr")
    assert "zarr.json" not in keys(f"{bucket}/d.zarr")


def test_a_new_description_is_sent_alone(copied, bucket):
    path, url = copied("tiny"), f"{bucket}/d.zarr"
    push(path, url)
    annotate(path, {"title": "renamed"})
    assert push(path, url).files == 1
    assert open_store(url).root.about == {"title": "renamed"}


def test_the_same_dataset_in_another_form_is_there_already(made, bucket, tmp_path):
    url = f"{bucket}/d.zarr"
    push(made("tiny"), url)
    assert push(pack(made("tiny"), tmp_path / "d.zip", codec="small"), url).files == 0
    assert open_store(url).root.layouts["observations"].codec == "none"


def test_a_packed_dataset_is_sent_as_a_folder_and_a_packed_file_is_fetched_from_a_bucket(made, bucket, tmp_path):
    packed = pack(made("small"), tmp_path / "small.zarr.zip")
    push(packed, f"{bucket}/d.zarr")
    assert open_store(f"{bucket}/d.zarr").verify().ok
    Bucket(f"{bucket}").put("small.zarr.zip", packed.read_bytes())
    assert is_whole(fetch(f"{bucket}/small.zarr.zip", tmp_path / "e.zarr").path)


@pytest.mark.parametrize("way", ["path", "file://"])
def test_a_folder_of_this_machine_is_pushed_to_and_filled_up(way, made, tmp_path):
    url = tmp_path / "d.zarr" if way == "path" else f"file://{tmp_path}/d.zarr"
    push(made("small"), url)
    assert is_whole(tmp_path / "d.zarr")
    (tmp_path / "d.zarr/observations/c/2/0").unlink()
    assert push(made("small"), url).files == 1
    with pytest.raises(DestinationError):
        push(made("tiny"), url)
    assert is_whole(tmp_path / "d.zarr")


def test_a_bucket_that_is_not_there_or_empty_is_told_and_nothing_is_kept(made, bucket, tmp_path):
    for url in ("s3://nowhere/d.zarr", f"{bucket}/nothing.zarr", "s3://team"):
        with pytest.raises(StorageError, match="s3://") as raised:
            fetch(url, tmp_path / "d.zarr")
        assert "\n" not in str(raised.value)
    assert not (tmp_path / "d.zarr").exists()
    assert not (tmp_path / "d.zarr.partial").exists()


def test_wrong_addresses_and_secrets_in_them_are_refused(made, bucket):
    with pytest.raises(ArgumentError, match="copy the folder"):
        push(made("tiny"), "https://user:hunter2@host/x")
    with pytest.raises(ArgumentError) as raised:
        push(made("tiny"), "s3://key:hunter2@team/x")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(RefusedError):
        push(made("tiny"), "simplecache::s3://team/x")


def test_no_secret_is_left_anywhere(made, bucket, tmp_path):
    url = f"{bucket}/d.zarr"
    push(made("tiny"), url)
    fetch(url, tmp_path / "d.zarr")
    with open_store(url) as store:
        store.verify()
    there = Bucket(url)
    sent = [bytes(there.open(path)._data) for path in there.sizes()]
    left = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert not any(b"hunter2" in data or b"testing" in data for data in (*sent, *left))


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    for scheme, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("az", "adlfs"), ("hf", "huggingface_hub")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(UnavailableError, match=f"{scheme}://.*{package}.*pip install") as raised:
            open_store(f"{scheme}://bucket/x")
        assert raised.value.exit_code == 8
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UnavailableError, match=r"alberta-data\[remote\]"):
        open_store("s3://bucket/x")
