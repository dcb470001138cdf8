"""`alberta-data list [FOLDER]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output
from alberta_data.cli.command import command


@command("alberta-data list", "alberta-data list datasets --stream abrupt --min-steps 1e5 --json")
def list_(
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="else ALBERTA_DATA_DIR, else ./datasets; or an address of an object store",
            show_default=False,
        ),
    ] = None,
    stream: Annotated[str | None, typer.Option("--stream", metavar="NAME", help="only of this stream")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="only of this seed"), options.Whole] = None,
    min_steps: Annotated[
        int | None, typer.Option("--min-steps", metavar="N", help="only of at least so many steps"), options.Count
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", metavar="N", help="only of at most so many steps"), options.Count
    ] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """The datasets of a folder, the unfinished ones with the command that goes on."""
    from alberta_data.dataset.listing import list_datasets
    from alberta_data.dataset.naming import data_folder
    from alberta_data.errors import ArgumentError
    from alberta_data.store.addresses import shown

    place = _place(folder) if folder is not None else data_dir
    if isinstance(place, Path) and not place.is_dir():
        raise ArgumentError(f"folder must be a folder there is, got {place}")
    if min_steps is not None and max_steps is not None and min_steps > max_steps:
        raise ArgumentError(f"--min-steps must be at most --max-steps ({max_steps}), got {min_steps}")
    entries = list_datasets(place, stream=stream, seed=seed, min_steps=min_steps, max_steps=max_steps)
    if as_json:
        output.put_json([_described(entry) for entry in entries])
        return
    if not entries:
        chosen = any(value is not None for value in (stream, seed, min_steps, max_steps))
        where = shown(place) if isinstance(place, str) else data_folder(place)
        output.say(f"no {'such ' if chosen else ''}datasets in {where}")
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


def _place(folder: str) -> Path | str:
    """Return the folder, or the address of one elsewhere."""
    from alberta_data.store.addresses import local_path
    from alberta_data.store.sources import is_address

    return (local_path(folder) or folder) if is_address(folder) else options.read_path("FOLDER", folder)


def _row(entry: Any) -> tuple[str, ...]:
    spec = entry.spec
    packed = entry.error is not None and entry.size is not None
    state = (
        "packed"
        if packed
        else "damaged"
        if entry.error is not None
        else f"{entry.done:.0%} done"
        if entry.id is None
        else entry.id[:8]
    )
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
