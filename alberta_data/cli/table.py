"""The commands there are, in the order of the help: name → where it is, and what it does in one line."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A command: `module:attribute`, and its line in the help (the first of its docstring)."""

    place: str
    summary: str


COMMANDS: dict[str, Row] = {
    "streams": Row("streams:streams", "The streams there are; of one, its parameters, formula and paper."),
    "generate": Row("generate:generate", "Generate a stream or an environment into a frozen dataset."),
    "env": Row("env:env", "Versions and settings that can change a bit."),
}
