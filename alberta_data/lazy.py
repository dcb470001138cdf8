"""Public names of a package, each imported when it is first asked for: a command pays for what it uses alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def homes_of(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return name → module, from module → names."""
    return {name: module for module, found in names.items() for name in found}


def exports(package: dict[str, Any], homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Args:
        package: its `globals()`, which keep what was found.
        homes: public name → the module that has it.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = found = getattr(import_module(homes[name]), name)
        return found

    def names() -> list[str]:
        return sorted({*(name for name in package if name.startswith("__")), *homes})

    return find, names
