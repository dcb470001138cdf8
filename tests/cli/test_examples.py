"""The scripts of `cli_examples/`: each runs, and Sutton's figures are the published ones."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "cli_examples"
SHELL = {"first_day": ["5e4"], "grid_of_step_sizes": ["5e4"], "environment": ["2e3"], "longer": ["1e5", "2e5"]}


@pytest.fixture
def table(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a Python example with its commands in this process, and return the rows of its table."""

    def run(name: str, *words: object) -> list[list[Any]]:
        def alberta_data(*command: object) -> Any:
            ran = cli(*command, "--json", "-q") if command[0] != "streams" else cli(*command, "--json")
            assert ran.code == 0, ran.err
            return ran.json

        commands = runpy.run_path(str(EXAMPLES / "commands.py"))
        tables: list[list[list[Any]]] = []
        stand_in = SimpleNamespace(
            alberta_data=alberta_data,
            parameters=commands["parameters"],
            print_table=lambda head, rows: tables.append(rows) or commands["print_table"](head, rows),
        )
        monkeypatch.setitem(sys.modules, "commands", stand_in)  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
        return tables[0]

    return run


def test_suttons_first_experiment_has_the_published_figures(table: Any) -> None:
    errors = {row[0]: row[1] for row in table("sutton_1992_experiment_1")}
    lms = {name: error for name, error in errors.items() if name.startswith("lms")}
    assert min(lms, key=lms.__getitem__) == "lms 0.03"
    assert errors["lms 0.03"] == pytest.approx(3.49, abs=0.01)
    assert errors["lms 0.01"] == pytest.approx(4.03, abs=0.01)
    assert errors["lms 0.05"] == pytest.approx(3.95, abs=0.01)
    assert errors["idbd 0.05 0.02"] == pytest.approx(1.55, abs=0.01)
    assert errors["idbd 0.05 0.01"] == pytest.approx(1.58, abs=0.01)
    assert errors["idbd 0.05 0.001"] == pytest.approx(2.16, abs=0.01)


def test_suttons_second_experiment_has_the_published_figures(table: Any) -> None:
    *_, (step, *found), _ = table("sutton_1992_experiment_2")
    assert step == 250_000
    smallest, largest, _, irrelevant = found
    assert 0.115 <= smallest <= largest <= 0.145
    assert irrelevant < 0.0085


def test_the_optimizers_are_compared_on_streams(table: Any) -> None:
    rows = table("compare_optimizers", 2000, "abrupt", "sutton1")
    assert [row[0] for row in rows] == ["abrupt", "", "", "sutton1", "", ""]
    assert [row[1].split()[0] for row in rows] == ["lms", "idbd", "autostep"] * 2


@pytest.mark.parametrize("name", SHELL)
def test_every_shell_example_runs(name: str, here: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["sh", str(EXAMPLES / f"{name}.sh"), *SHELL[name]]
    ran = subprocess.run(words, cwd=here, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    scripts = [path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh") and path.name != "commands.py"]
    assert all(f"`{path.name} " in text for path in scripts)
    assert {path.stem for path in scripts if path.suffix == ".sh"} == set(SHELL)


def test_a_python_example_runs_as_it_is_named(here: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "sutton_1992_experiment_1.py"), "500", "500"]
    ran = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "lms 0.03" in ran.stdout
