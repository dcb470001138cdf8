"""`alberta-data annotate DATASET`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from alberta_data.cli import options, output
from alberta_data.cli.command import command

_TEXTS = ("title", "description", "licence", "citation")


@command('alberta-data annotate abrupt-d20-1e5-s0 --title "Abrupt changes" --licence CC-BY-4.0')
def annotate(
    dataset: options.Dataset,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT")] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT")] = None,
    licence: Annotated[str | None, typer.Option("--licence", "--license", metavar="TEXT", help="an SPDX name")] = None,
    creator: Annotated[list[str] | None, typer.Option("--creator", metavar="TEXT", help="repeatable")] = None,
    citation: Annotated[str | None, typer.Option("--citation", metavar="TEXT")] = None,
    link: Annotated[list[str] | None, typer.Option("--link", metavar="URL", help="repeatable")] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Title, licence, citation and so on of a dataset; its id stays.

    An entry that is not given stays as it is; an empty text takes it away.
    """
    from alberta_data.dataset import open_dataset
    from alberta_data.store import annotate as change

    given: dict[str, Any] = dict(zip(_TEXTS, (title, description, licence, citation), strict=True))
    given.update(creators=creator, links=link)
    with open_dataset(dataset, data_dir=data_dir) as found:
        path, about = found.path, dict(found.about)
    about.update({name: value for name, value in given.items() if value is not None})
    about = {name: value for name, value in about.items() if value not in ("", [""])}
    root = change(path, about)
    if as_json:
        output.put_json({"id": root.id, "path": str(path), "about": about})
        return
    output.put(path)
    for name, value in about.items():
        output.put(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}")
