from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

import pytest

from alberta_data import errors
from alberta_data.cli import env, failures, main, stopping
from alberta_data.cli.command import in_options
from alberta_data.cli.table import COMMANDS
from tests.cli.conftest import Cli

CODES: Mapping[type[errors.AlbertaDataError], int] = {
    errors.DifferenceFound: 1,
    errors.ArgumentError: 2,
    errors.DestinationError: 2,
    errors.IncompleteDatasetError: 3,
    errors.DamagedDatasetError: 4,
    errors.RefusedError: 5,
    errors.StorageError: 6,
    errors.NonFiniteError: 7,
    errors.UnavailableError: 8,
}


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Any:
    """Run a command that raises what is given."""

    def run(error: BaseException, *words: str) -> Any:
        def load(self: Any, name: str) -> Any:
            def command() -> None:
                """Raise."""
                raise error

            return main.importlib.import_module("alberta_data.cli.command").build(command, ("x",))

        monkeypatch.setattr(main.Commands, "load", load)
        return cli(next(iter(COMMANDS)), *words)

    return run


@pytest.mark.parametrize("kind", CODES)
def test_every_failure_is_one_line_with_its_exit_code(kind: type[errors.AlbertaDataError], raising: Any) -> None:
    error = kind("rule, value, way out", step=3) if kind is errors.NonFiniteError else kind("rule, value, way out")
    ran = raising(error)
    assert (ran.code, ran.out, ran.err) == (CODES[kind], "", "error: rule, value, way out\n")


def test_every_class_of_the_tree_is_among_them() -> None:
    ours = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.AlbertaDataError)]
    assert set(CODES) == set(ours) - {errors.AlbertaDataError}


def test_a_bug_of_ours_is_one_line_that_asks_for_debug(raising: Any) -> None:
    ran = raising(ZeroDivisionError("division by zero"))
    assert ran.code == 70
    assert "ZeroDivisionError: division by zero" in ran.error
    assert "--debug" in ran.error
    assert "Traceback" not in ran.err


def test_debug_shows_where_it_came_from(raising: Any) -> None:
    ran = raising(ZeroDivisionError("division by zero"), "--debug")
    assert ran.code == 70
    assert ran.err.startswith("Traceback")
    assert "test_failures.py" in ran.err
    assert ran.err.splitlines()[-1] == "error: a bug of ours: ZeroDivisionError: division by zero"


def test_the_systems_own_failures_are_disk_or_network(raising: Any) -> None:
    ran = raising(PermissionError(13, "Permission denied", "/some/where"))
    assert (ran.code, ran.error) == (6, "/some/where: Permission denied")


def test_a_message_of_several_lines_stays_one_line(raising: Any) -> None:
    ran = raising(errors.RefusedError("a name\nerror: forged\x1b[2J"))
    assert (ran.code, ran.error) == (5, "a name\\nerror: forged\\x1b[2J")


@pytest.mark.parametrize(("number", "code", "text"), [(2, 130, "interrupted"), (15, 143, "terminated")])
def test_a_signal_has_the_exit_code_of_a_shell(number: int, code: int, text: str, raising: Any) -> None:
    ran = raising(stopping.Stopped(number))
    assert (ran.code, ran.err) == (code, f"{text}\n")


def test_a_closed_pipe_is_no_failure(raising: Any) -> None:
    assert raising(BrokenPipeError(32, "Broken pipe")).code == 0


def test_the_handlers_of_signals_are_put_back(cli: Cli) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert cli("streams").code == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_unknown_command_or_option_lists_what_there_is(cli: Cli) -> None:
    ran = cli("genrate")
    assert ran.code == failures.USAGE
    assert all(name in ran.error for name in COMMANDS)
    assert "'genrate'" in ran.error
    ran = cli("show", "x", "--jsno")
    assert (ran.code, "--json" in ran.error, "--jsno" in ran.error) == (2, True, True)
    assert cli().code == 2
    assert "DATASET must be given" in cli("show").error
    assert "--steps must be given" in cli("generate", "abrupt").error


def test_the_librarys_messages_speak_of_options() -> None:
    flags = {"steps": "--steps", "min_scale": "--min-scale", "max_scale": "--max-scale", "policy": "--policy"}
    assert in_options("steps must be at least 1", flags) == "--steps must be at least 1"
    assert in_options("policy's epsilon", flags) == "--policy's epsilon"
    assert in_options("min_scale must be at most max_scale", flags) == "--min-scale must be at most --max-scale"
    assert in_options("no file /tmp/min_scale/x", flags) == "no file /tmp/min_scale/x"
    assert in_options("a plan of steps", flags) == "a plan of steps"


def test_fast_math_in_the_flags_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    for words in (("env",), ("generate", "abrupt", "--steps", "10")):
        ran = cli(*words)
        assert (ran.code, "xla_cpu_enable_fast_math" in ran.error) == (2, True)
    assert env.env.name == "env"
