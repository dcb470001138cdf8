from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from alberta_data.cli import reference
from alberta_data.cli.table import COMMANDS
from tests.cli.conftest import Cli

ALL = dict(reference.commands())
DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.mark.parametrize("words", ALL)
def test_every_help_ends_with_its_examples(words: str, cli: Cli) -> None:
    ran = cli(*words.split()[1:], "--help")
    assert (ran.code, ran.err) == (0, "")
    ending = ran.out.rstrip().rpartition("Example")[2].splitlines()[1:]
    assert ending, ran.out
    assert all(line.strip().startswith(words.split(" ")[0]) for line in ending)
    assert all(len(line) <= 80 or "alberta-data" in line for line in ran.out.splitlines())


@pytest.mark.parametrize("words", [words for words, command in ALL.items() if not hasattr(command, "rows")])
def test_the_examples_of_every_command_run(
    words: str, cli: Cli, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words.endswith("delete"):
        cli("extend", dataset, "--steps", "2e5", "-q")
    if words.endswith("card"):
        pytest.importorskip("yaml")
    if words.endswith("freeze"):
        Path("recorded.csv").write_text("temperature,pressure,demand\n" + "20.5,1013.0,7.0\n" * 50)
    if words.endswith("unpack"):
        cli("pack", dataset, "-q")
    for example in ALL[words].examples:
        assert example.startswith(words)
        ran = cli(*shlex.split(example)[1:])
        assert ran.code == 0, ran.err


def test_the_reference_is_what_help_prints() -> None:
    assert DOCS.read_text() == reference.reference(), "run: python -m alberta_data.cli.reference > docs/commands.md"


def test_the_line_of_a_command_in_the_list_is_the_first_of_its_help() -> None:
    for name, row in COMMANDS.items():
        assert first_line(ALL[f"alberta-data {name}"]) == row.summary


def first_line(command: Any) -> str:
    """Return the first line of a command's help."""
    return str(command.help).partition("\n")[0]


def test_every_option_says_what_it_is() -> None:
    for words, command in ALL.items():
        for param in command.params:
            assert param.help, f"{words} {param.name}"


def test_the_version_is_printed(cli: Cli) -> None:
    from importlib import metadata

    assert cli("--version").out == f"alberta-data {metadata.version('alberta-data')}\n"
