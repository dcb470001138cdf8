from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from alberta_data import dataset as library
from tests.cli.conftest import NAME, Cli

SECRET = "s3cr3t"


@pytest.fixture
def id_(dataset: Path) -> str:
    with library.open_dataset(dataset) as found:
        return found.id


@pytest.fixture
def address(frozen: Path) -> Iterator[str]:
    """The frozen dataset behind a web server."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(frozen / "datasets"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{NAME}.zarr"
        server.shutdown()
        thread.join()


def test_a_dataset_is_packed_read_in_place_and_unpacked(cli: Cli, dataset: Path, id_: str) -> None:
    ran = cli("pack", NAME)
    assert (ran.code, ran.out) == (0, f"datasets/{NAME}.zarr.zip\n")
    for name in ("show", "verify"):
        assert id_ in cli(name, ran.out.strip()).out
    assert cli("learn", ran.out.strip(), "--steps", "1e3").code == 0
    ran = cli("unpack", ran.out.strip(), "-o", "u.zarr", "--json")
    assert (ran.code, ran.json) == (0, {"path": "u.zarr", "id": id_})
    assert cli("diff", "u.zarr", NAME).code == 0
    assert cli("unpack", f"{NAME}.zarr.zip", "-o", "u.zarr").code == 2
    assert cli("unpack", f"{NAME}.zarr.zip", "-o", "u.zarr", "--overwrite").code == 0


def test_delete_removes_a_packed_dataset_and_no_other_zip(cli: Cli, dataset: Path, here: Path) -> None:
    cli("pack", NAME, "-q")
    packed = here / "datasets" / f"{NAME}.zarr.zip"
    foreign = here / "datasets" / "foreign.zarr.zip"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("zarr.json", '{"node_type":"group","zarr_format":3}')
    with_more = here / "datasets" / "more.zarr.zip"
    with_more.write_bytes(packed.read_bytes())
    with zipfile.ZipFile(with_more, "a") as archive:
        archive.writestr("notes.txt", "mine")
    text = here / "datasets" / "text.zarr.zip"
    text.write_text("mine")
    for other in (foreign, with_more, text):
        assert "destination must be" in cli("delete", other.name, "--yes").error
        assert other.exists()
    (here / "datasets" / "link.zarr.zip").symlink_to(packed)
    assert cli("delete", "link.zarr.zip", "--yes").code == 2
    assert cli("delete", packed.name, "--yes").code == 0
    assert (packed.exists(), dataset.exists()) == (False, True)


def test_packing_anew_with_a_codec_keeps_the_id(cli: Cli, dataset: Path, id_: str) -> None:
    assert cli("pack", NAME, "-o", "small.zip", "--codec", "small", "--json").json == {"path": "small.zip", "id": id_}
    assert Path("small.zip").stat().st_size < 8_000_000
    assert cli("verify", "small.zip").code == 0
    assert cli("pack", NAME, "-o", "small.zip", "--codec", "zip").code == 2


def test_an_output_that_ends_in_zip_is_a_packed_dataset(cli: Cli, here: Path) -> None:
    words = ("generate", "abrupt", "--steps", "2e3", "-o", "x.zip")
    ran = cli(*words)
    assert (ran.code, ran.out, zipfile.is_zipfile("x.zip")) == (0, "x.zip\n", True)
    assert [path.name for path in here.iterdir()] == ["x.zip"]
    assert cli("verify", "x.zip").code == 0
    ran = cli(*words)
    assert (ran.code, "already there" in ran.err) == (0, True)
    assert cli(*words, "--seed", "1").code == 2
    assert cli(*words, "--seed", "1", "--overwrite").code == 0
    assert cli("show", "x.zip", "--json").json["spec"]["seed"] == 1
    Path("y.zip").write_text("mine")
    assert cli("generate", "abrupt", "--steps", "2e3", "-o", "y.zip").code == 2
    assert cli("generate", "abrupt", "--steps", "2e3", "-o", "y.zip", "--overwrite").code == 2
    assert Path("y.zip").read_text() == "mine"


def test_what_else_an_archive_holds_is_told(cli: Cli, dataset: Path) -> None:
    cli("pack", NAME, "-o", "x.zip")
    with zipfile.ZipFile("x.zip", "a") as archive:
        archive.writestr("__MACOSX/._x", b"x")
    ran = cli("unpack", "x.zip", "-o", "u.zarr")
    assert (ran.code, "__MACOSX/._x" in ran.err) == (0, True)


def test_a_hostile_archive_is_exit_5_before_anything_is_written(cli: Cli, dataset: Path, here: Path) -> None:
    cli("pack", NAME, "-o", "x.zip")
    with zipfile.ZipFile("x.zip", "a") as archive:
        archive.writestr("../escaped", b"x")
    ran = cli("unpack", "x.zip", "-o", "u.zarr")
    assert (ran.code, (here / "u.zarr").exists(), (here.parent / "escaped").exists()) == (5, False, False)


def test_a_dataset_at_an_address_is_fetched_shown_and_learned_from(
    cli: Cli, address: str, here: Path, frozen: Path
) -> None:
    cache = ("--cache-dir", here / "cache")
    shown = cli("show", address, "--json", *cache)
    found = shown.json["id"]
    assert (shown.code, f"{found}, not checked against one you were given" in shown.err) == (0, True)
    assert cli("show", address, "--id", found, *cache).err == ""
    ran = cli("fetch", address, "--id", found)
    assert (ran.code, ran.out, "not checked" in ran.err) == (0, f"datasets/{NAME}.zarr\n", False)
    assert cli("verify", ran.out.strip()).code == 0
    assert "already there" in cli("fetch", address).err
    there = cli("learn", address, "--steps", "1e3", "--json", "-o", "a", *cache).json
    assert there["digest"] == cli("learn", NAME, "--steps", "1e3", "--json", "-o", "b").json["digest"]


def test_another_id_or_no_answer_is_refused(cli: Cli, address: str, here: Path) -> None:
    cache = ("--cache-dir", here / "cache")
    assert cli("show", address, "--id", "0" * 64, *cache).code == 5
    assert cli("fetch", address, "--id", "0" * 64).code == 5
    assert cli("fetch", address, "--id", "0" * 8).code == 2
    ran = cli("fetch", address.replace(NAME, "nothing"))
    assert (ran.code, "404" in ran.error) == (6, True)
    assert cli("fetch", "gopher://host/x").code == 2
    assert cli("show", f"simplecache::{address}").code == 5
    assert not (here / "datasets").exists() or not list((here / "datasets").glob("*.zarr"))


def test_no_secret_in_an_address_is_ever_printed(cli: Cli, address: str, here: Path) -> None:
    before = address.replace("http://", f"http://user:{SECRET}@").replace(NAME, "nothing")
    behind = f"{address.replace(NAME, 'nothing')}?token={SECRET}"
    for secret in (before, behind):
        for name in ("show", "fetch", "learn", "verify", "extend", "annotate", "delete", "reproduce", "diff", "push"):
            words = [secret] * (2 if name in ("diff", "push") else 1) + ["--steps", "9"] * (name == "extend")
            ran = cli(name, *words, "--debug")
            assert ran.code in (2, 5, 6), ran.err
            assert SECRET not in ran.out + ran.err


def test_a_dataset_is_pushed_and_not_twice(cli: Cli, dataset: Path, here: Path, id_: str) -> None:
    ran = cli("push", NAME, here / "there.zarr")
    assert (ran.code, ran.out) == (0, f"{here / 'there.zarr'}\n")
    assert "already there" in cli("push", NAME, here / "there.zarr").err
    assert cli("show", "there.zarr", "--id", id_).code == 0
    assert cli("push", NAME, "http://127.0.0.1:9/x.zarr").code == 2


def test_a_card_and_a_croissant_description_are_the_librarys(cli: Cli, dataset: Path) -> None:
    pytest.importorskip("yaml")
    from alberta_data import share

    assert cli("card", NAME).out == share.card(dataset)
    assert cli("card", NAME, "--croissant", "--url", "https://host/x.zarr").json == share.croissant(
        dataset, url="https://host/x.zarr"
    )
    assert cli("card", NAME, "-o", "README.md").code == 0
    assert Path("README.md").read_text() == share.card(dataset)
    assert cli("card", NAME, "-o", "README.md").code == 2


def test_a_dataset_is_exported_and_frozen_again(cli: Cli, dataset: Path) -> None:
    ran = cli("export", NAME, "a.npz", "--start", "100", "--steps", "1e3")
    assert (ran.code, ran.out) == (0, "a.npz\n")
    with np.load("a.npz") as rows, library.open_dataset(dataset) as found:
        assert np.array_equal(rows["observations"], found.observations[100:1100])
    ran = cli("freeze", "a.npz", "--observations", "observations", "--targets", "targets", "--json", "-q")
    assert (ran.code, ran.json["spec"]["kind"], ran.json["spec"]["stream"]) == (0, "frozen", "a"), ran.err
    again = cli("freeze", "a.npz", "--observations", "observations", "--targets", "targets", "-o", "b.zarr", "--json")
    assert again.json["id"] == ran.json["id"]
    with library.open_dataset("b.zarr") as frozen_, library.open_dataset(dataset) as found:
        assert np.array_equal(frozen_.targets[:], found.targets[100:1100])
    assert cli("verify", "b.zarr").code == 0
    assert cli("learn", "b.zarr", "--json").json["noise_floor"] is None
    assert cli("reproduce", "b.zarr").code == 8


def test_bad_exports_and_freezes_are_one_line(cli: Cli, dataset: Path, here: Path) -> None:
    (here / "r.csv").write_text("a,b\n1,2\n")
    for named, words in (
        ("parquet, npz, csv", ("export", NAME, "x.txt")),
        ("100000", ("export", NAME, "x.csv", "--start", "2e5")),
        ("r.csv", ("export", NAME, "r.csv")),
        ("--observations", ("freeze", "r.csv")),
        ("'c'", ("freeze", "r.csv", "--observations", "c")),
        ("--observations", ("freeze", "r.csv", "--observations", "a,")),
        ("--other", ("freeze", "r.csv", "--observations", "a", "--other", "b")),
        ("r.txt", ("freeze", "r.txt", "--observations", "a")),
    ):
        ran = cli(*words)
        assert (ran.code, ran.out) == (2, ""), words
        assert named in ran.error
    assert sorted(path.name for path in here.iterdir()) == ["datasets", "r.csv"]
