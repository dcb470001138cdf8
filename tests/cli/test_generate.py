from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alberta_data import dataset as library
from alberta_data.cli import streams
from alberta_data.streams.registry import STREAMS
from alberta_data.streams.scaled import ScaledStreamWrapper, even_scales
from tests.cli.conftest import NAME, Cli, make_writable


def test_stdout_holds_the_path_alone_and_the_dataset_lies_there(cli: Cli, here: Path) -> None:
    ran = cli("generate", "abrupt", "--steps", "2e3", "--seed", "7")
    assert (ran.code, ran.out) == (0, "datasets/abrupt-d20-2e3-s7.zarr\n")
    with library.open_dataset(here / ran.out.strip()) as found:
        assert (found.spec["seed"], found.steps) == (7, 2000)
        assert "seed 7" in ran.err
        assert found.id in ran.err


@pytest.mark.parametrize("name", STREAMS)
def test_the_options_of_every_stream_are_its_parameters(name: str, cli: Cli) -> None:
    fields = streams.parameters(STREAMS[name])
    words = [word for field in fields for word in (streams.option(field), f"{_other(field)!r}")]
    ran = cli("generate", name, "--num-steps", "1e1", *words, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["spec"]["parameters"] == {field.name: _other(field) for field in fields}
    asked = cli("generate", name, "--help").out
    for field in fields:
        assert streams.option(field) in asked


def _other(field: Any) -> Any:
    """Return a value that is not the default."""
    default = streams.default(field)
    return default + 1 if isinstance(default, int) else default * 0.5


@pytest.mark.parametrize("name", STREAMS)
def test_the_defaults_on_the_command_line_are_those_of_python(name: str, cli: Cli) -> None:
    made = STREAMS[name](**{
        f.name: f.metadata["cli_default"] for f in streams.parameters(STREAMS[name]) if f.metadata["cli_default"]
    })  # fmt: skip
    assert cli("generate", name, "--steps", "10", "--dry-run", "--json").json["spec"] == made.spec(0, 10)


@pytest.mark.parametrize("name", STREAMS)
def test_a_parameter_below_its_bound_is_refused_by_the_name_of_its_option(name: str, cli: Cli, here: Path) -> None:
    for field in streams.parameters(STREAMS[name]):
        if field.metadata["minimum"] is None and field.metadata["above"] is None:
            continue
        ran = cli("generate", name, "--steps", "10", streams.option(field), "-1000000")
        assert ran.code == 2
        assert ran.error.startswith(f"{streams.option(field)} must be "), ran.error
    assert list(here.iterdir()) == []


def test_the_same_command_finds_what_it_made(cli: Cli, dataset: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in dataset.rglob("*")}
    ran = cli("generate", "abrupt", "--steps", "100k")
    assert (ran.code, ran.out) == (0, f"datasets/{NAME}.zarr\n")
    assert "already there" in ran.err
    assert {path: path.stat().st_mtime_ns for path in dataset.rglob("*")} == before


def test_another_spec_at_the_destination_is_refused_and_overwrite_replaces_it(cli: Cli, dataset: Path) -> None:
    ran = cli("generate", "abrupt", "--steps", "2e3", "--seed", "1", "-o", dataset)
    assert ran.code == 2
    assert "seed" in ran.error or "steps" in ran.error
    assert cli("verify", dataset).code == 0
    assert cli("generate", "abrupt", "--steps", "2e3", "--seed", "1", "-o", dataset, "--overwrite").code == 0
    with library.open_dataset(dataset) as found:
        assert (found.steps, found.spec["seed"]) == (2000, 1)


def test_nothing_of_anybody_elses_is_ever_replaced(cli: Cli, here: Path) -> None:
    (here / "notes").mkdir()
    (here / "notes" / "mine.txt").write_text("mine")
    (here / "file").write_text("mine")
    for place in ("notes", "file"):
        ran = cli("generate", "abrupt", "--steps", "2e3", "-o", place, "--overwrite")
        assert ran.code == 2
        assert place in ran.error
    assert (here / "notes" / "mine.txt").read_text() == (here / "file").read_text() == "mine"


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(cli: Cli, here: Path) -> None:
    ran = cli("generate", "abrupt", "--steps", "1e6", "--dry-run", "--json")
    plan = ran.json
    assert set(plan) == {"path", "spec", "spec_digest", "size", "size_on_disk", "files", "free"}
    assert plan["size"] > 84_000_000
    assert plan["spec_digest"] == library.spec_digest(plan["spec"])
    text = cli("generate", "abrupt", "--steps", "1e6", "--dry-run").out
    assert plan["spec_digest"] in text
    assert str(plan["size_on_disk"]) in text
    assert list(here.iterdir()) == []


def test_the_plan_is_what_the_dataset_takes(cli: Cli) -> None:
    plan = cli("generate", "sutton1", "--steps", "3e3", "--dry-run", "--json").json
    cli("generate", "sutton1", "--steps", "3e3", "-q")
    files = [path for path in Path(plan["path"]).rglob("*") if path.is_file()]
    assert len(files) == plan["files"]
    assert sum(path.stat().st_size for path in files) <= plan["size_on_disk"]


def test_json_has_what_programs_ask_for_at_the_top(cli: Cli) -> None:
    ran = cli("generate", "abrupt", "--steps", "2e3", "--json", "-q")
    assert ran.err == ""
    with library.open_dataset(ran.json["path"]) as found:
        assert ran.json["id"] == found.id
        assert ran.json["spec"] == dict(found.spec)
        assert ran.json["made_with"] == dict(found.made_with)
        assert ran.json["arrays"]["observations"]["shape"] == [2000, 20]


@pytest.mark.parametrize("spacing", ["log", "linear"])
def test_a_range_of_scales_wraps_any_stream(spacing: str, cli: Cli) -> None:
    ran = cli(
        "generate", "abrupt", "--steps", "2e3", "--feature-dim", "5", "--scale-range", "0.001:1000", "--scale-spacing",
        spacing, "-q",
    )  # fmt: skip
    wrapped = ScaledStreamWrapper(STREAMS["abrupt"](feature_dim=5), even_scales(5, 0.001, 1000.0, spacing == "log"))
    with library.open_dataset(ran.out.strip()) as found:
        assert dict(found.spec) == wrapped.spec(0, 2000)


def test_the_chunk_size_and_the_codec_change_no_bit(cli: Cli) -> None:
    ids = set()
    for number, options in enumerate([(), ("--chunk-steps", "700"), ("--codec", "fast"), ("--codec", "small")]):
        cli("generate", "abrupt", "--steps", "2e3", "-q", "-o", f"{number}.zarr", *options)
        with library.open_dataset(f"{number}.zarr") as found:
            ids.add(found.id)
    assert len(ids) == 1


def test_an_environment_is_generated_and_its_options_stand_in_the_spec(cli: Cli) -> None:
    ran = cli(
        "generate", "environment", "CartPole-v1", "--steps", "500", "--seed", "3", "--mode", "value", "--policy",
        "epsilon:0.1:1", "--gamma", "0.9", "--no-include-action", "--flatten", "one-hot", "--env-arg",
        "sutton_barto_reward=true", "-q",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    with library.open_dataset(ran.out.strip()) as found:
        parameters = dict(found.spec["parameters"])
        assert (found.spec["stream"], found.spec["seed"]) == ("CartPole-v1", 3)
        assert parameters["env_args"] == {"sutton_barto_reward": True}
        assert (parameters["mode"], parameters["policy"]) == ("value", "epsilon:0.1:1")
        assert (parameters["gamma"], parameters["include_action_in_features"]) == (0.9, False)
        assert np.asarray(found["actions"][:]).shape[0] == 500


BAD = [
    ("--steps", ["abrupt", "--steps", "0"]),
    ("--steps", ["abrupt", "--steps", "-5"]),
    ("--steps", ["abrupt", "--steps", "1.5"]),
    ("--steps", ["abrupt", "--steps", ""]),
    ("--steps", ["abrupt", "--steps", "1e400"]),
    ("--steps", ["abrupt", "--steps", "nan"]),
    ("--steps", ["abrupt"]),
    ("9007199254740993", ["abrupt", "--steps", "9007199254740993"]),
    ("--seed", ["abrupt", "--steps", "10", "--seed", "4294967296"]),
    ("--seed", ["abrupt", "--steps", "10", "--seed", "-1"]),
    ("--feature-dim", ["abrupt", "--steps", "10", "--feature-dim", "0"]),
    ("--noise-std", ["abrupt", "--steps", "10", "--noise-std", "nan"]),
    ("--noise-std", ["abrupt", "--steps", "10", "--noise-std", "1e39"]),
    ("--min-scale", ["dynamic-scale-shift", "--steps", "10", "--min-scale", "200"]),
    ("--codec", ["abrupt", "--steps", "10", "--codec", "zip"]),
    ("--chunk-steps", ["abrupt", "--steps", "10", "--chunk-steps", "0"]),
    ("--output", ["abrupt", "--steps", "10", "-o", ""]),
    ("--scale-range", ["abrupt", "--steps", "10", "--scale-range", "0:1"]),
    ("--scale-range", ["abrupt", "--steps", "10", "--scale-range", "1"]),
    ("--scale-range", ["abrupt", "--steps", "10", "--scale-spacing", "log"]),
    ("--scale-spacing", ["abrupt", "--steps", "10", "--scale-range", "1:2", "--scale-spacing", "cubic"]),
    ("random-walk, abrupt", ["abrubt", "--steps", "10"]),
    ("random-walk, abrupt", []),
    ("--change-interval", ["abrupt", "--steps", "10", "--change-intervall", "3"]),
    ("extra", ["abrupt", "--steps", "10", "extra"]),
    ("chunks of 1024 steps fit", ["abrupt", "--steps", "1e7", "--chunk-steps", "100"]),
    ("--gamma", ["environment", "CartPole-v1", "--steps", "10", "--gamma", "nan"]),
    ("--gamma", ["environment", "CartPole-v1", "--steps", "10", "--gamma", "1.5"]),
    ("--gamma", ["environment", "CartPole-v1", "--steps", "10", "--gamma", "-0.1"]),
    ("--policy", ["environment", "CartPole-v1", "--steps", "10", "--policy", "epsilon:nan:0"]),
    ("--policy", ["environment", "CartPole-v1", "--steps", "10", "--policy", "epsilon:2:0"]),
    ("--policy", ["environment", "CartPole-v1", "--steps", "10", "--policy", "os:system"]),
    ("--mode", ["environment", "CartPole-v1", "--steps", "10", "--mode", "rewards"]),
    ("--flatten", ["environment", "CartPole-v1", "--steps", "10", "--flatten", "none"]),
    ("--env-arg", ["environment", "CartPole-v1", "--steps", "10", "--env-arg", "x"]),
    ("--env-arg", ["environment", "CartPole-v1", "--steps", "10", "--env-arg", "x=1", "--env-arg", "x=2"]),
    ("CartPole-v9", ["environment", "CartPole-v9", "--steps", "10"]),
    ("ENV_ID", ["environment", "--steps", "10"]),
]


@pytest.mark.parametrize(("named", "words"), BAD, ids=[" ".join(words) for _, words in BAD])
def test_bad_input_is_one_line_that_names_it_with_nothing_written(
    named: str, words: list[str], cli: Cli, here: Path
) -> None:
    ran = cli("generate", *words)
    assert (ran.code, ran.out) == (2, "")
    assert named in ran.error
    assert list(here.iterdir()) == []


def test_an_environment_that_would_import_a_module_is_refused(cli: Cli, here: Path) -> None:
    (here / "canary.py").write_text("raise SystemExit('imported')")
    ran = cli("generate", "environment", "canary:X-v0", "--steps", "10")
    assert ran.code == 5
    assert "canary" in ran.error
    assert [path.name for path in here.iterdir()] == ["canary.py"]


def test_the_data_folder_is_the_option_or_the_variable_or_datasets(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("generate", "abrupt", "--steps", "10", "-q").out == "datasets/abrupt-d20-10-s0.zarr\n"
    monkeypatch.setenv("ALBERTA_DATA_DIR", "elsewhere")
    assert cli("generate", "abrupt", "--steps", "10", "-q").out == "elsewhere/abrupt-d20-10-s0.zarr\n"
    assert cli("generate", "abrupt", "--steps", "10", "-q", "--data-dir", "x").out == "x/abrupt-d20-10-s0.zarr\n"


def test_streams_lists_them_and_describes_one(cli: Cli) -> None:
    lines = cli("streams").out.splitlines()
    assert [line.split()[0] for line in lines] == list(STREAMS)
    text = cli("streams", "abrupt").out
    assert "--change-interval" in text
    assert "1000" in text
    assert "Sutton" in text
    described = cli("streams", "--json").json
    assert [entry["stream"] for entry in described] == list(STREAMS)
    assert described[1]["parameters"]["feature_dim"]["default"] == 20
    ran = cli("streams", "abrubt")
    assert (ran.code, "random-walk, abrupt" in ran.error) == (2, True)


def test_env_says_what_a_dataset_made_here_would_say(cli: Cli, dataset: Path) -> None:
    made_with = json.loads((dataset / "zarr.json").read_text())["attributes"]["alberta_data"]["made_with"]
    assert cli("env", "--json").json == made_with
    assert made_with["xla_flags"] in cli("env").out
    make_writable(dataset)
