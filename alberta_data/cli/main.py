"""The entry point: arguments → exit code."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NoReturn

import typer

from alberta_data.cli import failures, output
from alberta_data.cli.command import CONTEXT
from alberta_data.cli.groups import Group
from alberta_data.cli.stopping import stoppable
from alberta_data.cli.table import COMMANDS

NAME = "alberta-data"
_ALLOCATIONS_A_COLLECTION = 20_000


class Commands(Group):
    """All commands; each is imported when it is called."""

    def rows(self) -> Mapping[str, str]:
        """Return name → one line of help."""
        return {name: row.summary for name, row in COMMANDS.items()}

    def load(self, name: str) -> Any:
        """Import a command."""
        module, _, attribute = COMMANDS[name].place.partition(":")
        return getattr(importlib.import_module(f"alberta_data.cli.{module}"), attribute)


def _version(value: bool) -> None:
    if value:
        from importlib import metadata

        output.put(f"{NAME} {metadata.version(NAME)}")
        raise typer.Exit


@lru_cache(maxsize=1)
def app() -> Any:
    """Return the command line as one object."""
    made = typer.Typer(
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
        epilog="\b\nExample:\n  alberta-data generate abrupt --steps 1e5",
    )

    @made.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_version, help="the version")
        ] = False,
        debug: Annotated[bool, typer.Option("--debug", help="show where an error came from")] = False,
    ) -> None:
        """Streams of a drifting world: generated once, frozen on disk, verified, replayed bit for bit."""

    return typer.main.get_command(made)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        argv: the arguments, without the program's name; by default the process's.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    output.be_tolerant()
    try:
        with stoppable(), output.warnings_said("-q" in arguments or "--quiet" in arguments):
            return _run(arguments)
    except BaseException as err:
        return failures.report(err, debug="--debug" in arguments)


def script() -> NoReturn:
    """Run the command of this process and end the process: what the installed script calls."""
    # What jax and the commands make while they start stays: looking through it for garbage took a fifteenth of that.
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION)
    code = main()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    # All is written, synced and closed. To take the interpreter down module by module, jax in it, is an eighth of a
    # short command.
    os._exit(code)


def _run(arguments: list[str]) -> int:
    if "_ALBERTA_DATA_COMPLETE" in os.environ:
        app().main(args=arguments, prog_name=NAME)
    with app().make_context(NAME, arguments) as context:
        return int(app().invoke(context) or 0)
