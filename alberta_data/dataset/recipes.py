"""What a recipe says of a dataset: its spec, the id that must come out, and what it was made with."""

from __future__ import annotations

from typing import Any

from alberta_data.store import canonical
from alberta_data.store.metadata import Root

RECIPE_VERSION = 1


def recipe_entries(root: Root) -> dict[str, Any]:
    """Return the recipe of the dataset with this root, as JSON values."""
    return {
        "recipe_version": RECIPE_VERSION,
        "spec": dict(root.spec),
        "id": root.id,
        "made_with": dict(root.made_with),
    }


def recipe_text(root: Root) -> str:
    """Return the recipe of the dataset with this root: canonical JSON of one line."""
    return canonical.dumps(recipe_entries(root)).decode("utf-8")
