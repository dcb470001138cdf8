"""What is printed: for people on stderr, for programs on stdout, escaped, whatever the terminal can take."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from alberta_data.errors import StorageError

# Texts, compiled where they are used: `--help` starts without them.
_COLOUR = r"\x1b\[[0-9;]*m"
_USER = r"://[^/\s]*@"
_QUERY = r"(://[^\s?'\"]+)\?[^\s'\"]+"


def be_tolerant() -> None:
    """Let no character that a terminal lacks decide a result: such a one is printed as its escape."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def escaped(text: object) -> str:
    """Return the text with control, bidirectional and other invisible characters as escapes, on one line.

    What lies in a dataset is a stranger's: it must not move the cursor, forge a line or turn text around. What stands
    before the host of an address is a secret, and is left out.
    """
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(text))
    return re.sub(_USER, "://", shown) if "@" in shown else shown


def without_queries(text: str) -> str:
    """Return the text with what stands behind the `?` of an address left out: signatures and tokens stand there."""
    return re.sub(_QUERY, r"\1?…", text)


def put(text: object) -> None:
    """Print one line for programs, to stdout.

    Raises:
        StorageError: stdout cannot be written to; a closed pipe is no failure.
    """
    try:
        _write(sys.stdout, f"{escaped(text)}\n")
    except (OSError, ValueError) as err:
        raise StorageError(f"the output cannot be written: {err}") from err


def put_json(value: Any) -> None:
    """Print a JSON value for programs, to stdout; numbers that JSON lacks are null."""
    import json

    for line in json.dumps(_plain(value), indent=2, allow_nan=False).splitlines():
        put(line)


def say(text: object = "") -> None:
    """Print one line for people, to stderr. That it cannot be printed changes nothing."""
    with contextlib.suppress(OSError, ValueError):
        _write(sys.stderr, f"{escaped(text)}\n")


def write_new(path: Path, text: str) -> None:
    """Write a text to a file that is not there yet.

    Raises:
        DestinationError: something lies there.
    """
    from alberta_data.errors import DestinationError

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DestinationError(f"--output must be a new file, got one that is there: {path}") from None


@contextlib.contextmanager
def warnings_said(quiet: bool) -> Iterator[None]:
    """Print what libraries warn of as lines for people, without their colours; with `quiet`, not at all."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        if not quiet:
            say(f"warning: {re.sub(_COLOUR, '', str(message)).strip()}")

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before


def table(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return the lines of a table whose columns are aligned, two spaces between."""
    shown = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    ]


def can_show(text: str) -> bool:
    """Say whether stdout has these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def silence(stream: TextIO | None) -> None:
    """Send what is still printed to nowhere: the reader at the other end of the pipe has left."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by whoever started us
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)


def _plain(value: Any) -> Any:
    """Return the value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return [_plain(item) for item in value] if isinstance(value, Iterable) else str(value)
