"""`alberta-data show DATASET`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from alberta_data.cli import numbers, options, output, places
from alberta_data.cli.command import command
from alberta_data.cli.making import described


@command("alberta-data show abrupt-d20-1e5-s0")
def show(
    dataset: places.Place,
    id: places.Id = None,
    cache_dir: places.CacheDir = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """A dataset: what it holds, what it follows from, what it was made with.

    Its root is checked; `verify` checks every byte.
    """
    with places.opened(dataset, data_dir, id, cache_dir) as found:
        if as_json:
            output.put_json(described(found))
            return
        output.put(found.store.name)
        for line in output.table(_rows(found), indent="  "):
            output.put(line)


def _rows(dataset: Any) -> list[tuple[str, str]]:
    spec = dataset.spec
    seed = "" if spec["seed"] is None else f", seed {spec['seed']}"
    rows = [
        ("id", dataset.id),
        (spec["kind"], f"{spec['stream']}, version {spec['version']}{seed}"),
        ("steps", numbers.with_commas(dataset.steps)),
        *((f"  {name}", json.dumps(value)) for name, value in spec["parameters"].items()),
        ("arrays", ""),
        *((f"  {name}", _array(array)) for name, array in dataset.arrays.items()),
        ("size", numbers.bytes_text(dataset.size)),
    ]
    rows += _listed("made with", dataset.made_with)
    return rows + (_listed("about", dataset.about) if dataset.about else [])


def _array(array: Any) -> str:
    shape = " × ".join(numbers.with_commas(length) for length in array.shape)
    return f"{array.dtype} {shape}" + (f"  {', '.join(array.columns)}" if array.columns else "")


def _listed(title: str, entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    return [(title, ""), *((f"  {name}", text(value)) for name, value in entries.items())]
