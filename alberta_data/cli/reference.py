"""The command reference, made from what `--help` prints: `python -m alberta_data.cli.reference > docs/commands.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from alberta_data.cli.main import NAME, app

WIDTH = 100
_HEAD = """# Commands

Generated from `--help`: `python -m alberta_data.cli.reference > docs/commands.md`.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command with its words, groups before what is in them."""
    yield from _below(NAME, app())


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    if hasattr(command, "rows"):
        for name in command.rows():
            yield from _below(f"{words} {name}", command.load(name))


def help_text(words: str, command: Any) -> str:
    """Return what `--help` prints on a terminal of 100 columns."""
    context = command.make_context(words, [], resilient_parsing=True, terminal_width=WIDTH)
    return str(command.get_help(context)).rstrip()


def reference() -> str:
    """Return the reference as Markdown."""
    parts = [f"\n## {words}\n\n```text\n{help_text(words, command)}\n```\n" for words, command in commands()]
    return _HEAD + "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
