"""`alberta-data pack`, `unpack`, `fetch`, `push`, `recipe`: datasets between people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from alberta_data.cli import numbers, options, output, places
from alberta_data.cli.command import command
from alberta_data.cli.progress import Progress
from alberta_data.cli.stopping import resumable


@command("alberta-data pack abrupt-d20-1e5-s0")
def pack(
    dataset: places.Place,
    output_: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="the file; else the dataset's path with .zip behind"),
        options.APath,
    ] = None,
    codec: Annotated[
        str | None,
        typer.Option("--codec", metavar="none|fast|small", help="compress the chunks anew; else as they are"),
    ] = None,
    overwrite: options.Overwrite = False,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """A dataset in one file, a zip, read in place or unpacked; its id stays.

    The same dataset gives the same bytes. Prints the file's path to stdout.
    """
    from alberta_data import share

    with places.opened(dataset, data_dir, quiet=quiet) as found:
        with Progress("pack", unit="bytes", quiet=quiet) as progress:
            path = share.pack(found, output_, codec, overwrite=overwrite, progress=progress)
        _tell(path, found.id, as_json=as_json)


@command("alberta-data unpack abrupt-d20-1e5-s0.zarr.zip -o unpacked.zarr")
def unpack(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="a packed dataset", show_default=False), options.APath],
    output_: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="the folder; else the file's path without .zip"),
        options.APath,
    ] = None,
    overwrite: options.Overwrite = False,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """A packed dataset made a folder again, every byte checked, nothing written outside that folder.

    Prints its path to stdout.
    """
    from alberta_data import share
    from alberta_data.dataset.naming import data_folder

    there = data_folder(data_dir) / path
    with Progress("unpack", unit="bytes", quiet=quiet) as progress:
        found = share.unpack(
            there if not path.exists() and there.exists() else path, output_, overwrite=overwrite, progress=progress
        )
    for name in found.extra if not quiet else ():
        output.say(f"left in the archive: {name} is not of the dataset")
    _tell(found.path, found.id, as_json=as_json)


@command("alberta-data fetch datasets/abrupt-d20-1e5-s0.zarr -o fetched.zarr")
def fetch(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="file, http, https, s3, gs, az, hf, or a path", show_default=False)
    ],
    id: places.Id = None,
    output_: options.Output = None,
    overwrite: options.Overwrite = False,
    any_redirect: Annotated[
        bool, typer.Option("--any-redirect", help="follow redirects to another scheme and into the local network too")
    ] = False,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Bring a dataset from elsewhere; the same command goes on with one that was interrupted.

    Every file is checked. An id that was given by another way than the dataset makes sure that it is the one that was
    meant. Prints its path to stdout.
    """
    from alberta_data import share

    with Progress("fetch", unit="bytes", quiet=quiet) as progress, resumable():
        found = share.fetch(
            url, output_, id, data_dir=data_dir, overwrite=overwrite, any_redirect=any_redirect, progress=progress
        )
    if not quiet:
        came = f"{numbers.bytes_text(found.bytes)} came" if found.files else "already there"
        output.say(f"{came}, id {found.id}{'' if id else places.UNCHECKED}")
    _tell(found.path, found.id, as_json=as_json)


@command("alberta-data push abrupt-d20-1e5-s0 pushed.zarr")
def push(
    dataset: places.Place,
    url: Annotated[str, typer.Argument(metavar="URL", help="s3, gs, az, hf, file, or a path", show_default=False)],
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Send a dataset elsewhere; what is there already is not sent again.

    Content goes first, the root last: there is no dataset there until it is whole. Prints its address to stdout.
    """
    from alberta_data import share

    with (
        places.opened(dataset, data_dir, quiet=quiet) as found,
        Progress("push", unit="bytes", quiet=quiet) as progress,
        resumable(),
    ):
        sent = share.push(found, url, progress=progress)
    if not quiet:
        output.say(f"{numbers.bytes_text(sent.bytes)} sent" if sent.files else "already there")
    if as_json:
        output.put_json({"url": sent.url, "id": sent.id, "files": sent.files, "bytes": sent.bytes})
    else:
        output.put(sent.url)


@command("alberta-data recipe abrupt-d20-1e5-s0", "alberta-data recipe abrupt-d20-1e5-s0 -o abrupt.json")
def recipe(
    dataset: places.Place,
    output_: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="a new file; else stdout"), options.APath
    ] = None,
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,
) -> None:
    """The few lines that make a dataset again: spec, id, what it was made with.

    `alberta-data reproduce FILE` makes it and compares the id.
    """
    from alberta_data import share

    with places.opened(dataset, data_dir, quiet=quiet) as found:
        text = share.recipe(found)
    if output_ is None:
        output.put_json(json.loads(text))
        return
    output.write_new(output_, text + "\n")
    output.put(output_)


def _tell(path: Path, id: str, *, as_json: bool) -> None:
    if as_json:
        output.put_json({"path": str(path), "id": id})
    else:
        output.put(path)
