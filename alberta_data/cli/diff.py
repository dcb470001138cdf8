"""`alberta-data diff A B`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output
from alberta_data.cli.command import command


@command("alberta-data diff abrupt-d20-1e5-s0 abrupt-d20-1e5-s0")
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=options.NAMED, show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="likewise", show_default=False)],
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """In what two datasets differ: spec, what they were made with, content.

    Exit 1 where they are not the same dataset. Versions and settings that differ are told, and alone are no
    difference.
    """
    from alberta_data import dataset as library
    from alberta_data.errors import DifferenceFound

    with library.open_dataset(a, data_dir=data_dir) as first, library.open_dataset(b, data_dir=data_dir) as second:
        found = library.diff(first, second)
    if as_json:
        output.put_json(vars(found))
    else:
        _tell(found)
    if not found.identical:
        raise DifferenceFound(f"{a} and {b} must have one id to be the same dataset, got two")


def _tell(found: Any) -> None:
    _entries("spec", found.spec)
    _entries("made_with", found.made_with)
    for name, text in found.arrays.items():
        output.put(f"arrays  {name}: {text}")
    if found.identical:
        output.put("content  identical")
    elif found.first_step is None:
        output.put("content  the same numbers in the steps that both have")
    else:
        output.put(
            f"content  differs first at step {numbers.with_commas(found.first_step)} in {found.array}: "
            f"{numbers.with_commas(found.differing)} numbers, by at most {found.max_ulp} ulp"
        )


def _entries(title: str, entries: Mapping[str, tuple[Any, Any]]) -> None:
    output.put(f"{title}  the same") if not entries else None
    for name, (one, other) in entries.items():
        output.put(f"{title}  {name}: {json.dumps(one)} and {json.dumps(other)}")
