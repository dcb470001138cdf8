"""An exception → one line on stderr and an exit code."""

from __future__ import annotations

import sys
from typing import Any

import typer

from alberta_data.cli import output
from alberta_data.cli.stopping import Stopped
from alberta_data.errors import AlbertaDataError

USAGE = 2
STORAGE = 6
BUG = 70
INTERRUPTED = 130

# typer may stand on click or carry its own copy of it; the class is found without asking which.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def report(error: BaseException, *, debug: bool) -> int:
    """Print what went wrong and return the exit code.

    Args:
        error: what a command raised.
        debug: print the traceback first.
    """
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else USAGE
    if isinstance(error, BrokenPipeError) and not isinstance(error, AlbertaDataError):
        output.silence(sys.stdout)
        return 0
    if debug:
        import traceback

        for line in traceback.format_exception(error):
            for part in line.splitlines():
                output.say(output.without_queries(part))
    code, text = _described(error, debug)
    text = output.without_queries(text)
    output.say(f"error: {text}" if code not in (INTERRUPTED, 128 + 15) else text)
    return code


def _described(error: BaseException, debug: bool) -> tuple[int, str]:
    if isinstance(error, Stopped):
        return 128 + error.number, f"{'interrupted' if error.number == 2 else 'terminated'}{error.advice}"
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, AlbertaDataError) and type(error) is not AlbertaDataError:
        return error.exit_code, str(error)
    if isinstance(error, UsageError):
        return USAGE, usage_text(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return STORAGE, f"{where}{error.strerror or error}"
    hint = "" if debug else "; --debug shows where, please report it"
    return BUG, f"a bug of ours: {type(error).__name__}: {error}{hint}"


def usage_text(error: Exception) -> str:
    """Return what was wrong with the arguments, in the form of the library's own messages."""
    context: Any = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "alberta-data")
    param, unknown = getattr(error, "param", None), getattr(error, "option_name", None)
    if unknown is not None and type(error).__name__ == "NoSuchOption":
        return f"option must be one of {', '.join(_options(context))}, got {unknown}"
    if param is not None and type(error).__name__ == "MissingParameter":
        return f"{named(param)} must be given, got none; see {path} --help"
    if param is not None:
        return f"{named(param)}: {getattr(error, 'message', error)}"
    message = getattr(error, "message", str(error)).rstrip(".")
    return f"{message[:1].lower()}{message[1:]}; see {path} --help"


def _options(context: Any) -> list[str]:
    """Return the long options of a command."""
    params = context.command.get_params(context)
    return [option for each in params for option in (*each.opts, *each.secondary_opts) if option.startswith("--")]


def named(param: object) -> str:
    """Return what a person calls a parameter: its first long option, or the argument's name in capitals."""
    options = [option for option in getattr(param, "opts", []) if option.startswith("--")]
    return options[0] if options else str(getattr(param, "metavar", None) or getattr(param, "name", "")).upper()
