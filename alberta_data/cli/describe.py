"""`alberta-data annotate` and `card`: what a dataset says of itself, and to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from alberta_data.cli import options, output, places
from alberta_data.cli.command import command


@command('alberta-data annotate abrupt-d20-1e5-s0 --title "Abrupt changes" --licence CC-BY-4.0')
def annotate(
    dataset: options.Dataset,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="one line")] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="a few sentences")] = None,
    licence: Annotated[str | None, typer.Option("--licence", "--license", metavar="TEXT", help="an SPDX name")] = None,
    creators: Annotated[
        list[str] | None, typer.Option("--creator", metavar="TEXT", help="of a person or group; repeatable")
    ] = None,
    citation: Annotated[str | None, typer.Option("--citation", metavar="TEXT", help="text or BibTeX")] = None,
    links: Annotated[list[str] | None, typer.Option("--link", metavar="URL", help="repeatable")] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Title, licence, citation and so on of a dataset; its id stays.

    An entry that is not given stays as it is; an empty text takes it away.
    """
    from alberta_data import share
    from alberta_data.dataset.naming import find

    path = find(dataset, data_dir)
    root = share.annotate(
        path, title=title, description=description, licence=licence, creators=_none_of([""], creators),
        citation=citation, links=_none_of([""], links),
    )  # fmt: skip
    if as_json:
        output.put_json({"id": root.id, "path": str(path), "about": root.about})
        return
    output.put(path)
    for name, value in root.about.items():
        output.put(f"  {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


def _none_of(empty: list[str], values: list[str] | None) -> list[str] | None:
    """Return the values, of which one empty text stands for none at all."""
    return [] if values == empty else values


@command("alberta-data card abrupt-d20-1e5-s0", "alberta-data card abrupt-d20-1e5-s0 --croissant")
def card(
    dataset: places.Place,
    croissant: Annotated[bool, typer.Option("--croissant", help="the Croissant description, JSON, instead")] = False,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="where others find it, for the lines that load it")
    ] = None,
    output_: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="a new file; else stdout"), options.APath
    ] = None,
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,
) -> None:
    """The dataset card, Markdown for a hub's README, or its Croissant description."""
    from alberta_data import share

    with places.opened(dataset, data_dir, quiet=quiet) as found:
        text = json.dumps(share.croissant(found, url=url), indent=2) if croissant else share.card(found, url=url)
    if output_ is None:
        for line in text.splitlines():
            output.put(line)
        return
    output.write_new(output_, text.rstrip("\n") + "\n")
    output.put(output_)
