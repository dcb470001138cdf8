from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from alberta_data import dataset as library
from tests.cli.conftest import NAME, Cli


@pytest.fixture
def id_(dataset: Path) -> str:
    with library.open_dataset(dataset) as found:
        return found.id


def test_a_dataset_is_named_by_path_name_or_digits_of_its_id(cli: Cli, dataset: Path, id_: str) -> None:
    for place in (dataset, NAME, f"{NAME}.zarr", id_[:8], id_):
        assert cli("show", place, "--json").json["id"] == id_
    for place in ("nothing", id_[:7], "0" * 8):
        ran = cli("show", place)
        assert (ran.code, place in ran.error) == (2, True)


def test_show_tells_spec_arrays_and_what_it_was_made_with(cli: Cli, dataset: Path, id_: str) -> None:
    text = cli("show", NAME).out
    for word in (id_, "abrupt", "seed 0", "100,000", "change_interval", "float32 100,000 × 20", "jax", "CC0-1.0"):
        assert word in text
    assert set(cli("show", NAME, "--json").json) >= {"id", "spec", "arrays", "made_with", "path"}


def test_list_shows_what_is_finished(cli: Cli, dataset: Path, id_: str) -> None:
    text = cli("list").out
    assert f"{NAME}.zarr" in text
    assert id_[:8] in text
    assert cli("list", "--json").json[0]["id"] == id_
    assert cli("list", "datasets").out == cli("list", "--data-dir", "datasets").out == text
    assert (cli("list", "nowhere").code, cli("list", "nowhere").out) == (2, "")


def test_list_takes_the_address_of_a_folder_and_says_that_a_web_server_has_no_listing(
    cli: Cli, dataset: Path, here: Path
) -> None:
    text = cli("list").out
    assert cli("list", (here / "datasets").as_uri()).out == text
    assert cli("list", (here / "nowhere").as_uri()).code == 2
    ran = cli("list", "https://user:hunter2@example.org/datasets")
    assert (ran.code, ran.out) == (2, "")
    assert "a web server has no listing" in ran.error
    assert "hunter2" not in ran.error


def test_list_shows_only_what_is_asked_for(cli: Cli, dataset: Path) -> None:
    words = ("-q", "--steps", "1e3", "--seed", "7", "--scale-range", "0.1:10")
    assert cli("generate", "cyclic", *words, "-o", "datasets/c.zarr").code == 0

    def names(*words: str) -> list[str]:
        return [entry["name"] for entry in cli("list", *words, "--json").json]

    assert names() == [f"{NAME}.zarr", "c.zarr"]
    assert names("--stream", "cyclic") == names("--seed", "7") == names("--max-steps", "1e4") == ["c.zarr"]
    assert names("--stream", "abrupt", "--min-steps", "1e5", "--max-steps", "1e5", "--seed", "0") == [f"{NAME}.zarr"]
    assert names("--stream", "abrupt", "--seed", "7") == []
    assert cli("list", "--seed", "9").err == "no such datasets in datasets\n"
    assert "--min-steps" in cli("list", "--min-steps", "10", "--max-steps", "5").error


def test_an_empty_data_folder_is_an_empty_list(cli: Cli) -> None:
    ran = cli("list")
    assert (ran.code, ran.out, ran.err) == (0, "", "no datasets in datasets\n")
    assert cli("list", "--json").json == []


def test_verify_says_that_it_is_whole(cli: Cli, dataset: Path, id_: str) -> None:
    ran = cli("verify", NAME)
    assert (ran.code, ran.out.startswith("whole: "), id_ in ran.out) == (0, True, True)
    quick = cli("verify", NAME, "--quick")
    assert (quick.code, "nothing was read" in quick.out) == (0, True)


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "folder"])
def test_verify_lists_each_damage_with_array_and_chunk(damage: str, cli: Cli, dataset: Path) -> None:
    chunk = dataset / "observations" / "c" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    chunk.unlink()
    if damage == "flip":
        data[1000] ^= 1
        chunk.write_bytes(data)
    elif damage == "cut":
        chunk.write_bytes(data[:-1])
    elif damage == "folder":
        chunk.mkdir()
    ran = cli("verify", NAME)
    assert ran.code == 4
    assert NAME in ran.error
    assert "damaged: " in ran.out
    assert "observations" in ran.out
    assert "c/0/0" in ran.out
    found = cli("verify", NAME, "--json")
    assert (found.code, found.json["ok"], found.json["damages"][0]["array"]) == (4, False, "observations")
    assert cli("verify", NAME, "--quick").code == (0 if damage == "flip" else 4)


def test_verify_lists_foreign_files_and_notes_dot_files(cli: Cli, dataset: Path) -> None:
    (dataset / ".DS_Store").write_text("x")
    ran = cli("verify", NAME)
    assert (ran.code, "note: .DS_Store" in ran.out) == (0, True)
    (dataset / "stray").write_text("x")
    ran = cli("verify", NAME)
    assert (ran.code, "foreign: stray" in ran.out) == (4, True)


def test_a_damaged_root_is_exit_4_and_a_foreign_format_exit_5(cli: Cli, dataset: Path) -> None:
    root = dataset / "zarr.json"
    text = root.read_text()
    root.write_text(text.replace('"seed":0', '"seed":1'))
    assert cli("show", NAME).code == 4
    root.write_text(text.replace('"format_version":1', '"format_version":2'))
    assert cli("show", NAME).code == 5
    for name in ("show", "verify", "reproduce"):
        assert cli(name, NAME).code == 5


def test_reproduce_says_identical(cli: Cli, dataset: Path, id_: str) -> None:
    ran = cli("reproduce", NAME)
    assert (ran.code, ran.out) == (0, f"identical: id {id_}\n")
    assert cli("reproduce", NAME, "--json").json["identical"] is True


def test_reproduce_makes_a_recipe(cli: Cli, dataset: Path, here: Path) -> None:
    recipe = here / "abrupt.json"
    assert cli("recipe", NAME, "-o", recipe).out == f"{recipe}\n"
    assert json.loads(recipe.read_text()) == cli("recipe", NAME).json
    assert cli("recipe", NAME, "-o", recipe).code == 2
    ran = cli("reproduce", recipe, "-o", "again.zarr")
    assert (ran.code, "identical" in ran.out, "again.zarr" in ran.out) == (0, True, True)
    other = json.loads(recipe.read_text())
    other["spec"]["seed"] = 1
    recipe.write_text(json.dumps(other))
    assert cli("reproduce", recipe, "-o", "other.zarr").code == 1
    recipe.write_text("[]")
    assert cli("reproduce", recipe).code == 5


def test_reproduce_prints_the_call_and_imports_nothing_that_was_not_allowed(cli: Cli, here: Path) -> None:
    cli("generate", "environment", "CartPole-v1", "--steps", "100", "-q", "-o", "c.zarr")
    ran = cli("reproduce", "c.zarr")
    assert (ran.code, "gymnasium.make('CartPole-v1')" in ran.err) == (0, True)
    changed = cli("recipe", "c.zarr").json
    changed["spec"]["stream"] = "canary:X-v0"
    (here / "canary.py").write_text("raise SystemExit('imported')")
    recipe = here / "r.json"
    recipe.write_text(json.dumps(changed))
    ran = cli("reproduce", recipe)
    assert ran.code == 5
    assert "--allow-import canary" in ran.err


def test_diff_tells_spec_and_the_first_step_that_differs(cli: Cli, dataset: Path, here: Path) -> None:
    assert cli("diff", NAME, dataset).code == 0
    cli("generate", "abrupt", "--steps", "1e5", "--change-interval", "500", "-q", "-o", "b.zarr")
    ran = cli("diff", NAME, "b.zarr")
    assert ran.code == 1
    assert "change_interval: 1000 and 500" in ran.out
    assert "step 500 in targets" in ran.out
    assert cli("diff", NAME, "b.zarr", "--json").json["first_step"] == 500


def test_extend_makes_what_generate_makes(cli: Cli, dataset: Path) -> None:
    ran = cli("extend", NAME, "--steps", "150k", "-q")
    assert (ran.code, ran.out) == (0, "datasets/abrupt-d20-150000-s0.zarr\n")
    with library.open_dataset(ran.out.strip()) as found:
        cli("generate", "abrupt", "--steps", "150k", "-o", "direct.zarr", "-q")
        with library.open_dataset("direct.zarr") as direct:
            assert found.id == direct.id
    ran = cli("extend", NAME, "--steps", "1e5")
    assert (ran.code, "--steps must be more than the 100000" in ran.error) == (2, True)


def test_annotate_changes_the_description_and_not_the_id(cli: Cli, dataset: Path, id_: str) -> None:
    ran = cli("annotate", NAME, "--title", "A title", "--creator", "A", "--creator", "B", "--licence", "")
    assert ran.code == 0, ran.err
    with library.open_dataset(dataset) as found:
        assert found.id == id_
        assert dict(found.about) == {"title": "A title", "creators": ["A", "B"]}
    assert cli("verify", NAME).code == 0


def test_delete_asks_and_removes_only_what_is_ours(
    cli: Cli, dataset: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert (cli("delete", NAME).code, dataset.exists()) == (2, True)
    for answer, code in (("n\n", 2), ("\n", 2), ("y\n", 0)):
        monkeypatch.setattr("sys.stdin", _Terminal(answer))
        assert (cli("delete", NAME).code, dataset.exists()) == (code, code == 2)
    (here / "notes").mkdir()
    (here / "notes" / "zarr.json").write_text("{}")
    assert cli("delete", "notes", "--yes").code == 2
    assert (here / "notes" / "zarr.json").exists()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_a_strangers_file_says_is_printed_escaped(cli: Cli, dataset: Path) -> None:
    nasty = "\x1b[2J\u202eevil\nerror: forged [bold]x[/bold]"
    ran = cli("annotate", NAME, "--description", nasty)
    shown = cli("show", NAME)
    for text in (ran.out, shown.out):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\x1b[2J\\u202eevil\\nerror: forged [bold]x[/bold]" in text
    assert not any(line.startswith("error: forged") for line in shown.out.splitlines())


def test_a_dataset_on_a_read_only_disk_is_read(cli: Cli, frozen: Path) -> None:
    place = frozen / "datasets" / f"{NAME}.zarr"
    assert not place.stat().st_mode & 0o222 or any(not p.stat().st_mode & 0o222 for p in place.rglob("*"))
    for words in (("show", place), ("verify", place), ("list", place.parent)):
        assert cli(*words).code == 0


def test_a_name_that_is_no_dataset_is_told_apart(cli: Cli, dataset: Path, here: Path) -> None:
    unfinished = here / "datasets" / "u.zarr.partial"
    shutil.copytree(dataset, unfinished)
    (unfinished / "zarr.json").unlink()
    assert cli("show", "u").code == 3
    (here / "file.zarr").write_text("x")
    assert cli("show", "file.zarr").code in (2, 5)
