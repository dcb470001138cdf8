"""`alberta-data export` and `freeze`: to and from other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import options, output, places
from alberta_data.cli.command import Reads, command
from alberta_data.cli.making import described
from alberta_data.cli.progress import Progress
from alberta_data.cli.stopping import resumable
from alberta_data.errors import ArgumentError


def read_columns(option: str, text: str) -> list[str]:
    """Return the names of `a,b,c`.

    Raises:
        ArgumentError: an empty one.
    """
    names = text.split(",")
    if "" in names:
        raise ArgumentError(f"{option} must be names of columns such as a,b,c, got {text!r:.80}")
    return names


def read_array(option: str, text: str) -> tuple[str, str | list[str]]:
    """Return array and columns of `NAME=a,b`; a single column is a number a step.

    Raises:
        ArgumentError: no `=`, or an empty name.
    """
    name, separator, columns = text.partition("=")
    if not separator or not name:
        raise ArgumentError(f"{option} must be NAME=COLUMN or NAME=COLUMN,COLUMN, got {text!r:.80}")
    names = read_columns(option, columns)
    return name, names if len(names) > 1 else names[0]


@command("alberta-data export abrupt-d20-1e5-s0 abrupt.csv --steps 1000")
def export(
    dataset: places.Place,
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="a new file, its ending the format", show_default=False),
        options.APath,
    ],
    format: Annotated[
        str | None, typer.Option("--format", metavar="parquet|npz|csv|arff|minari", help="else what FILE ends in")
    ] = None,
    array: Annotated[
        list[str] | None, typer.Option("--array", metavar="NAME", help="one of the arrays, else all; repeatable")
    ] = None,
    start: Annotated[int, typer.Option("--start", metavar="N", help="the first step"), options.Whole] = 0,
    steps: Annotated[
        int | None, typer.Option("--steps", "--num-steps", metavar="N", help="how many; else all"), options.Count
    ] = None,
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,
) -> None:
    """A dataset, or some steps of it, in another form: Parquet, npz, CSV, ARFF for MOA, Minari.

    Every row is checked as it is read. Prints the file's path to stdout.
    """
    from alberta_data import share

    with places.opened(dataset, data_dir, quiet=quiet) as found, Progress("export", quiet=quiet) as progress:
        stop = None if steps is None else start + steps
        made = share.export(found, path, format, names=array, start=start, stop=stop, progress=progress)
    output.put(made)


@command("alberta-data freeze recorded.csv --observations temperature,pressure --targets demand")
def freeze(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="parquet, npz or csv; a row a step", show_default=False),
        options.APath,
    ],
    *,
    observations: Annotated[
        list[str], typer.Option("--observations", metavar="NAME,…", help="the features, in order"), Reads(read_columns)
    ],
    targets: Annotated[
        list[str] | None,
        typer.Option("--targets", metavar="NAME,…", help="what is to be predicted"),
        Reads(read_columns),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option("--other", metavar="ARRAY=NAME,…", help="a further array; repeatable"),
        Reads(read_array),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", help="what the stream is called; else as the file")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="NAME", help="what the numbers of a CSV are; else float64")
    ] = None,
    output_: options.Output = None,
    data_dir: options.DataDir = None,
    chunk_steps: options.ChunkSteps = None,
    codec: options.Codec = None,
    overwrite: options.Overwrite = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """A stream that was recorded, made a dataset with the same guarantees: under an id, verifiable.

    Columns of one array share one dtype, the file's own. Prints the path of the dataset to stdout.
    """
    from alberta_data import share
    from alberta_data.dataset.opened import open_dataset

    further: dict[str, Any] = dict(others or [])  # type: ignore[arg-type]  # `read_array` made pairs of the texts
    if len(further) != len(others or []):
        raise ArgumentError("--other must give each array once, got one twice")
    with Progress("freeze", quiet=quiet) as progress, resumable():
        path = share.freeze(
            file, output_, name=name, observations=_joined(observations), targets=_joined(targets or []),
            others=further, dtype=dtype, data_dir=data_dir, chunk_steps=chunk_steps, codec=codec, overwrite=overwrite,
            force=force, progress=progress,
        )  # fmt: skip
    with open_dataset(path) as dataset:
        if not quiet:
            output.say(f"id {dataset.id}")
        if as_json:
            output.put_json(described(dataset))
        else:
            output.put(dataset.path)


def _joined(lists: list[str]) -> list[str]:
    """Return the names of a repeated option, each time a list."""
    return [name for names in lists for name in names]
