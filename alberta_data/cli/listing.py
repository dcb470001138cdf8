"""`alberta-data list [FOLDER]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output
from alberta_data.cli.command import command


@command("alberta-data list", "alberta-data list datasets --json")
def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="else ALBERTA_DATA_DIR, else ./datasets", show_default=False),
        options.APath,
    ] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """The datasets of a folder, the unfinished ones with the command that goes on."""
    from alberta_data.dataset import data_folder, list_datasets
    from alberta_data.errors import ArgumentError

    folder = folder or data_dir
    if folder is not None and not folder.is_dir():
        raise ArgumentError(f"folder must be a folder there is, got {folder}")
    entries = list_datasets(folder)
    if as_json:
        output.put_json([_described(entry) for entry in entries])
        return
    if not entries:
        output.say(f"no datasets in {data_folder(folder)}")
        return
    rows = [("name", "stream", "features", "steps", "seed", "size", "id"), *map(_row, entries)]
    for line in output.table(rows):
        output.put(line)
    for entry in entries:
        if entry.error is not None:
            output.put(f"{entry.name}: {entry.error}")
        elif entry.id is None:
            way = f"goes on with: {entry.resume}" if entry.resume else "goes on with the command that began it"
            output.put(f"{entry.name}: {entry.done:.0%} done, {way}")


def _row(entry: Any) -> tuple[str, ...]:
    spec = entry.spec
    state = "damaged" if entry.error is not None else f"{entry.done:.0%} done" if entry.id is None else entry.id[:8]
    return (
        entry.name,
        str(spec.get("stream", "")),
        "" if entry.features is None else str(entry.features),
        numbers.with_commas(spec["steps"]) if "steps" in spec else "",
        "" if spec.get("seed") is None else str(spec["seed"]),
        "" if entry.size is None else numbers.bytes_text(entry.size),
        state,
    )


def _described(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name, "path": str(entry.path), "id": entry.id, "spec": entry.spec, "features": entry.features,
        "size": entry.size, "done": entry.done, "resume": entry.resume, "error": entry.error,
    }  # fmt: skip
