"""`alberta-data reproduce DATASET|RECIPE`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output
from alberta_data.cli.command import command
from alberta_data.cli.computing import prepare_to_generate
from alberta_data.cli.progress import Progress
from alberta_data.cli.stopping import resumable

_PACKED = ".zip"


@command("alberta-data reproduce abrupt-d20-1e5-s0")
def reproduce(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET|RECIPE", help=f"{options.NAMED}; or a recipe's file", show_default=False)
    ],
    output_: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="where a recipe's dataset goes; else the data folder"),
        options.APath,
    ] = None,
    allow_import: options.AllowImport = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a dataset again from its spec and compare bit by bit, or make a recipe's.

    Exit 1 where a number differs: the first step, how many, how far apart, and what of versions and settings
    differs. Exit 8 where it cannot be made here.
    """
    prepare_to_generate()
    from alberta_data import dataset as library
    from alberta_data.errors import ArgumentError, DifferenceFound

    allowed, recipe = tuple(allow_import or ()), _recipe(dataset)
    with Progress("reproduce", quiet=quiet) as progress, resumable():
        if recipe is not None:
            _announce(recipe["spec"], quiet)
            found = library.reproduce(recipe, output_, allow_import=allowed, progress=progress, data_dir=data_dir)
        else:
            if output_ is not None:
                raise ArgumentError(
                    f"--output must go with a recipe, got {output_} for a dataset, compared where it lies"
                )
            with library.open_dataset(dataset, data_dir=data_dir) as opened:
                _announce(opened.spec, quiet)
                found = opened.reproduce(allow_import=allowed, progress=progress)
    if as_json:
        output.put_json({**vars(found), "path": None if found.path is None else str(found.path)})
    else:
        _tell(found)
    if not found.identical:
        raise DifferenceFound(f"{dataset} must be made again bit for bit, got other numbers here")


def _recipe(place: str) -> Mapping[str, Any] | None:
    """Return the recipe that a file holds; None where the place is no file of a recipe."""
    path = Path(place)
    if not path.is_file() or path.suffix == _PACKED:
        return None
    from alberta_data.share import read_recipe

    return read_recipe(path)


def _announce(spec: Mapping[str, Any], quiet: bool) -> None:
    """Say which environment will be made: it is code that a stranger's file names."""
    if spec.get("kind") != "environment" or quiet:
        return
    from alberta_data.environments.making import call_text
    from alberta_data.environments.parameters import EnvironmentStream

    output.say(f"makes {call_text(EnvironmentStream.from_spec(spec))}")


def _tell(found: Any) -> None:
    if found.identical:
        output.put(f"identical: id {found.id}")
    elif found.first_step is not None:
        output.put(f"different: first at step {numbers.with_commas(found.first_step)} in {found.array}")
        output.put(f"  {numbers.with_commas(found.differing)} numbers differ, by at most {found.max_ulp} ulp")
    if found.path is not None:
        output.put(found.path)
    if found.note:
        output.put(found.note)
    for name, (then, now) in found.made_with.items():
        output.put(f"  {name}: {then} then, {now} now")
