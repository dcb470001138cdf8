"""The few lines that make a dataset again: its spec, the id that must come out, and what it was made with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from alberta_data.dataset.recipes import RECIPE_VERSION, recipe_text
from alberta_data.errors import ArgumentError, RefusedError, StorageError
from alberta_data.share.opening import opened
from alberta_data.store import canonical
from alberta_data.store.metadata import check_spec

# A wrapped stream's scales are a number a feature; everything else is under 4 KB.
MOST_BYTES = 16 * 2**20
_KEYS = {"recipe_version", "spec", "id", "made_with"}


def recipe(dataset: Any) -> str:
    """Return the recipe of a dataset: canonical JSON of one line, to be read by `read_recipe`.

    Args:
        dataset: a path, an address, or a dataset that is open.
    """
    with opened(dataset) as store:
        return recipe_text(store.root)


def read_recipe(file: Path | str) -> dict[str, Any]:
    """Return what a recipe's file says: `spec`, `id` and `made_with`, each checked; nothing is made or imported.

    Args:
        file: path of the file.

    Raises:
        ArgumentError: there is no such file.
        RefusedError: not a recipe, or one that passes a limit.
        StorageError: the file cannot be read.
    """
    try:
        with open(file, "rb", opener=_plainly) as opened_file:
            data = opened_file.read(MOST_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError):
        raise ArgumentError(f"there must be a recipe at the path given, got none at {file}") from None
    except OSError as err:
        raise StorageError(f"reading {file} failed: {err.strerror}; check the path") from None
    return recipe_from_bytes(data, str(file))


def recipe_from_bytes(data: bytes, name: str = "the recipe") -> dict[str, Any]:
    """Return what the bytes of a recipe say; see `read_recipe`."""
    if len(data) > MOST_BYTES:
        raise RefusedError(f"a recipe must have at most {MOST_BYTES} bytes, got more in {name}: refused")
    found = canonical.loads(data, name)
    if not isinstance(found, dict) or set(found) != _KEYS:
        raise RefusedError(f"a recipe must have the entries {', '.join(sorted(_KEYS))}, got others in {name}: refused")
    version = found.pop("recipe_version")
    if type(version) is not int or version != RECIPE_VERSION:
        raise RefusedError(f"recipe_version must be {RECIPE_VERSION}, got {version!r:.40}: use a newer alberta-data")
    check_spec(found["spec"])
    made_with, digits = found["made_with"], found["id"]
    if not isinstance(digits, str) or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise RefusedError(f"id of a recipe must be 64 hex digits, got another in {name}: refused")
    plain = str | int | float | bool | None
    if not isinstance(made_with, dict) or not all(isinstance(value, plain) for value in made_with.values()):
        raise RefusedError(f"made_with of a recipe must be names and plain values, got others in {name}: refused")
    return found


def _plainly(path: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
