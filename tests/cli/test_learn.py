from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import zarr

from alberta_data import dataset as library
from alberta_data.cli.grid import grid
from alberta_data.environments.gymnasium_stream import collect_trajectory
from alberta_data.environments.parameters import PredictionMode
from alberta_data.errors import ArgumentError
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, OnlineNormalizer
from alberta_data.replay import learn_from_trajectory
from alberta_data.runs import learn, read_receipt
from tests.cli.conftest import NAME, Cli, process


def test_learn_leaves_the_run_that_the_library_leaves(cli: Cli, dataset: Path, here: Path) -> None:
    ran = cli("learn", NAME, "--optimizer", "autostep", "--tau", "5000", "--steps", "20k", "--json")
    assert ran.code == 0, ran.err
    with library.open_dataset(dataset) as found:
        run = learn(found, LinearLearner(Autostep(tau=5000.0)), steps=20_000, path=here / "mine")
    assert ran.json["digest"] == run.digest
    assert ran.json["id"] == run.receipt["run"]["dataset"]
    assert ran.json["path"].startswith(f"runs/{NAME}-")
    assert read_receipt(ran.json["path"]) == run.receipt


def test_the_table_has_a_row_a_learner_the_best_first(cli: Cli, dataset: Path) -> None:
    words = ("--optimizer", "lms", "--optimizer", "idbd", "--step-size", "0.001:10:log5", "--steps", "2e4")
    ran = cli("learn", NAME, *words)
    assert ran.code == 0, ran.err
    receipt = read_receipt(ran.out.splitlines()[-1])
    assert receipt["digest"] in ran.out
    assert receipt["run"]["dataset"] in ran.out
    assert "noise floor 0.01;" in ran.out
    head, *rows = ran.out.splitlines()[-8:-1]
    assert head.split()[:2] == ["learner", "step_size"]
    assert rows[0].startswith("idbd")
    best = min(member["results"]["mean_squared_error"] for member in receipt["members"] if member["results"])
    assert f"{best:.4g}" in rows[0]
    assert rows[-1].rstrip().endswith(f"step {receipt['members'][4]['stopped_at']}")
    assert "left the finite numbers" in rows[-1]
    assert sum(bar in rows[0] for bar in "▁▂▃▄▅▆▇█") > 0


def test_a_finished_run_is_learned_again_and_compared(cli: Cli, dataset: Path) -> None:
    words = ("learn", NAME, "--steps", "5e3")
    first = cli(*words, "--json").json
    ran = cli(*words)
    assert (ran.code, "learned again" in ran.out) == (0, True)
    receipt = Path(first["path"]) / "receipt.json"
    assert cli("learn", NAME, "--check", receipt).code == 0
    changed = json.loads(receipt.read_text())
    changed["digest"] = "0" * 64
    receipt.chmod(0o644)
    receipt.write_text(json.dumps(changed))
    for again in (words, ("learn", NAME, "--check", receipt)):
        ran = cli(*again)
        assert (ran.code, "digest" in ran.error) == (1, True)
    assert cli(*words, "--overwrite").code == 0
    assert cli("learn", NAME, "--check", receipt.parent).code == 0


def test_several_datasets_are_learned_each_by_itself_or_in_sequence(cli: Cli, dataset: Path) -> None:
    cli("generate", "abrupt", "--steps", "2e4", "--seed", "1", "-q", "-o", "b.zarr")
    ran = cli("learn", NAME, "b.zarr", "--steps", "1e4")
    runs = [line for line in ran.out.splitlines() if line.startswith("runs/")]
    assert (ran.code, len(runs)) == (0, 2)
    alone = cli("learn", "b.zarr", "--steps", "1e4", "--json").json
    assert str(alone["path"]) == runs[1]
    ran = cli("learn", NAME, "b.zarr", "--steps", "1e4", "--in-sequence")
    after = [line for line in ran.out.splitlines() if line.startswith("runs/")]
    assert (ran.code, after[0], after[1] != runs[1]) == (0, runs[0], True)
    assert read_receipt(after[1])["run"]["after"] == read_receipt(runs[0])["digest"]


def test_what_was_learned_in_sequence_is_checked_after_the_run_before_it(cli: Cli, dataset: Path) -> None:
    cli("generate", "abrupt", "--steps", "2e4", "--seed", "1", "-q", "-o", "b.zarr")
    ran = cli("learn", NAME, "b.zarr", "--steps", "1e4", "--in-sequence")
    first, second = [line for line in ran.out.splitlines() if line.startswith("runs/")]
    assert "--after" in cli("learn", "b.zarr", "--check", second).error
    assert cli("learn", "b.zarr", "--check", second, "--after", first).code == 0
    ran = cli("learn", "b.zarr", "--steps", "1e4", "--after", first)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, second)
    assert cli("learn", NAME, "--check", first, "--after", second).code == 2


def test_windows_of_so_many_steps_are_asked_for_and_checked(cli: Cli, dataset: Path) -> None:
    assert cli("learn", NAME, "--steps", "1e4", "--every", "2_500", "-o", "run").code == 0
    assert zarr.open_group("run/curves.zarr", mode="r")["mean"].shape == (4, 1, 3)
    assert read_receipt("run")["run"]["every"] == 2500
    assert cli("learn", NAME, "--check", "run").code == 0


def test_full_metrics_and_histories_are_written(cli: Cli, dataset: Path) -> None:
    words = ("--optimizer", "autostep", "--normalizer", "ema", "--metrics", "full", "--track-step-sizes", "1000",
             "--track-normalizer", "500", "--steps", "5e3", "--start", "100", "-o", "run")  # fmt: skip
    ran = cli("learn", NAME, *words)
    assert ran.code == 0, ran.err
    assert zarr.open_group("run/metrics.zarr", mode="r")["metrics"].shape == (5000, 1, 4)
    assert zarr.open_group("run/histories.zarr", mode="r")["step_sizes"].shape[0] == 5
    assert read_receipt("run")["run"]["range"] == [100, 5000]


def test_a_dry_run_says_passes_and_size_and_writes_nothing(cli: Cli, dataset: Path, here: Path) -> None:
    ran = cli("learn", NAME, "--step-size", "0.001:0.1:log5000", "--dry-run", "--json")
    assert (ran.code, ran.json["members"], ran.json["passes"]) == (0, 5000, 3)
    assert "3 over 100,000 steps" in cli("learn", NAME, "--step-size", "0.001:0.1:log5000", "--dry-run").out
    assert not (here / "runs").exists()


def test_nothing_is_learned_from_a_damaged_dataset(cli: Cli, dataset: Path, here: Path) -> None:
    (dataset / "targets" / "c" / "0" / "0").unlink()
    ran = cli("learn", NAME)
    assert (ran.code, ran.out) == (4, "")
    assert "targets" in ran.error
    assert not any(path.name == "receipt.json" for path in here.rglob("*"))


def test_where_every_learner_is_lost_it_is_exit_7_and_no_run(cli: Cli, dataset: Path, here: Path) -> None:
    ran = cli("learn", NAME, "--step-size", "5,10")
    assert (ran.code, ran.out) == (7, "")
    assert "step" in ran.error
    assert not any(path.name == "receipt.json" for path in here.rglob("*"))


BAD = [
    ("--optimizer", ["--optimizer", "adam"]),
    ("lms, idbd, autostep", ["--optimizer", "adam"]),
    ("--normalizer", ["--normalizer", "batch"]),
    ("--step-size", ["--step-size", "nan"]),
    ("--step-size", ["--step-size", "inf"]),
    ("--step-size", ["--step-size", "1e-50"]),
    ("--step-size", ["--step-size", ""]),
    ("--step-size", ["--step-size", "0"]),
    ("--tau", ["--tau", "5"]),
    ("--decay", ["--decay", "0.9"]),
    ("100000", ["--start", "1e5"]),
    ("100000", ["--steps", "1e6"]),
    ("--target", ["--target", "1"]),
    ("--target", ["--target", "reward"]),
    ("--gamma", ["--gamma", "0.9"]),
    ("next_observations", ["--td"]),
    ("--metrics", ["--metrics", "some"]),
    ("--every", ["--every", "0"]),
    ("--every", ["--every", "1.5"]),
    ("--check", ["--check", "x", "--every", "5"]),
    ("x", ["--after", "x"]),
    ("--check", ["--check", "x", "--step-size", "1"]),
    ("x", ["--check", "x"]),
    ("grid", ["--optimizer", "autostep", "--tau", "1:2:lin50000", "--meta-step-size", "1:2:lin50000"]),
]


@pytest.mark.parametrize(("named", "words"), BAD, ids=[" ".join(words) for _, words in BAD])
def test_bad_input_is_one_line_with_nothing_written(
    named: str, words: list[str], cli: Cli, dataset: Path, here: Path
) -> None:
    ran = cli("learn", NAME, *words)
    assert (ran.code, ran.out) == (2, "")
    assert named in ran.error
    assert [path.name for path in here.iterdir()] == ["datasets"]


def test_a_run_folder_of_something_else_is_refused(cli: Cli, dataset: Path, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "notes").write_text("mine")
    ran = cli("learn", NAME, "--steps", "1e3", "-o", "mine", "--overwrite")
    assert (ran.code, "mine" in ran.error) == (2, True)
    cli("learn", NAME, "--steps", "1e3", "-o", "run")
    ran = cli("learn", NAME, "--steps", "2e3", "-o", "run")
    assert (ran.code, "--overwrite" in ran.error) == (2, True)
    assert (here / "mine" / "notes").read_text() == "mine"


def test_a_grid_has_every_combination_once_in_the_order_typed() -> None:
    values = {"step_size": (0.1, 0.01, 0.1), "meta_step_size": (0.001, 0.01), "decay": (0.9,)}
    found = grid(["lms", "idbd"], ["none", "ema"], values)
    ema = OnlineNormalizer(decay=0.9)
    assert found == [
        LinearLearner(rule, scaler)
        for rule in (LMS(0.1), LMS(0.01), IDBD(meta_step_size=0.001), IDBD(meta_step_size=0.01))
        for scaler in (None, ema)
    ]
    with pytest.raises(ArgumentError, match="tau must go with autostep, got lms"):
        grid(["lms"], ["none"], {"tau": (1.0,)})


def test_another_terminal_and_other_flags_change_bars_and_no_digest(cli: Cli, dataset: Path, here: Path) -> None:
    variables = {"PYTHONIOENCODING": "cp1252", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "JAX_ENABLE_X64": "1"}
    ran = process("learn", NAME, "--steps", "1e4", cwd=here, env=variables)
    assert ran.returncode == 0, ran.stderr
    row = next(line for line in ran.stdout.splitlines() if line.startswith("lms  "))
    assert set(row.split()[-1]) <= set("12345678")
    assert cli("learn", NAME, "--steps", "1e4", "--json").json["digest"] in ran.stdout


@pytest.fixture
def cartpole(cli: Cli) -> str:
    return cli("generate", "environment", "CartPole-v1", "--steps", "3000", "-q").out.strip()


@pytest.mark.parametrize(
    ("words", "mode", "include"),
    [((), "reward", True), (("--mode", "next_state"), "next_state", True), (("--no-include-action",), "reward", False)],
)
def test_an_environment_is_learned_in_its_own_mode_or_another(
    words: tuple[str, ...], mode: str, include: bool, cli: Cli, cartpole: str
) -> None:
    observations, targets = collect_trajectory(
        gymnasium.make("CartPole-v1"), None, 3000, mode=PredictionMode(mode), include_action_in_features=include
    )
    ran = cli("learn", cartpole, *words, "--metrics", "full", "-o", "run", "--json")
    assert ran.code == 0, ran.err
    _, metrics = learn_from_trajectory(LinearLearner(), observations, targets)
    stored = zarr.open_group("run/metrics.zarr", mode="r")["metrics"][:]
    assert np.array_equal(stored, np.asarray(metrics).reshape(stored.shape))
    assert ("replayed" in ran.json["run"]) == bool(words)
    assert cli("learn", cartpole, "--check", "run").code == 0


def test_a_part_of_an_environments_steps_has_the_metrics_of_the_whole(cli: Cli, cartpole: str) -> None:
    words = ("--mode", "next_state", "--target", "2", "--metrics", "full")
    cli("learn", cartpole, *words, "--steps", "2000", "-o", "whole")
    with library.open_dataset(cartpole) as found:
        replay = found.replay("next_state")
        rows = np.concatenate([block.targets for block in replay.blocks(block_steps=64)])
        for start, stop in ((0, 100), (37, 2001), (2900, 3000), (2999, 3000)):
            part = np.concatenate([block.targets for block in replay.blocks(start, stop, block_steps=64)])
            assert np.array_equal(part, rows[start:stop])
    whole = zarr.open_group("whole/metrics.zarr", mode="r")["metrics"][:]
    cli("learn", cartpole, *words, "--steps", "500", "-o", "part")
    assert np.array_equal(zarr.open_group("part/metrics.zarr", mode="r")["metrics"][:], whole[:500])


def test_values_are_learned_from_transitions(cli: Cli, cartpole: str) -> None:
    ran = cli("learn", cartpole, "--td", "--gamma", "0.9", "--step-size", "0.001", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["run"]["td"] == {"gamma": 0.9}
    other = cli("learn", cartpole, "--td", "--gamma", "0", "--step-size", "0.001", "--json").json
    plain = cli("learn", cartpole, "--step-size", "0.001", "--json").json
    assert ran.json["digest"] != other["digest"] == plain["digest"]
    ran = cli("learn", cartpole, "--td", "--gamma", "1.5")
    assert (ran.code, ran.error.startswith("--gamma must be")) == (2, True)


def test_a_mode_is_asked_of_environments_only(cli: Cli, dataset: Path, cartpole: str) -> None:
    ran = cli("learn", NAME, "--mode", "value")
    assert (ran.code, ran.error.startswith("--mode is of an environment's dataset")) == (2, True)
    ran = cli("learn", cartpole, "--mode", "values")
    assert (ran.code, "reward, next_state, value" in ran.error) == (2, True)
