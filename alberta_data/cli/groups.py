"""A group whose commands are loaded when they are asked for: its help lists them without importing any."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """Commands by name. A subclass says which there are, and how one is loaded."""

    kind = "command"

    @abstractmethod
    def rows(self) -> Mapping[str, str]:
        """Return name → one line of help, in the order of the help."""

    @abstractmethod
    def load(self, name: str) -> Any:
        """Return the command of a name that is in `rows`."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names, for completion."""
        return list(self.rows())

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Return a command, or None where there is none."""
        return self.load(cmd_name) if cmd_name in self.rows() else None

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the list of the help."""
        with formatter.section("Commands" if self.kind == "command" else f"{self.kind}s".capitalize()):
            formatter.write_dl(list(self.rows().items()))

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Find the command, or say which there are."""
        if args[0] not in self.rows() and not ctx.resilient_parsing:
            self.unknown(ctx, repr(args[0]))
        return args[0], self.get_command(ctx, args[0]), args[1:]

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the command, or say that one is needed."""
        if not (ctx.args or getattr(ctx, "_protected_args", None) or getattr(ctx, "protected_args", None)):
            self.unknown(ctx, "none")
        return super().invoke(ctx)

    def unknown(self, ctx: typer.Context, got: str) -> None:
        """Raise the usage error that lists what there is."""
        ctx.fail(f"{self.kind} must be one of {', '.join(self.rows())}, got {got:.80}")
