"""`alberta-data verify DATASET`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output, places
from alberta_data.cli.command import command
from alberta_data.cli.progress import Progress


@command("alberta-data verify abrupt-d20-1e5-s0", "alberta-data verify abrupt-d20-1e5-s0 --quick")
def verify(
    dataset: places.Place,
    id: places.Id = None,
    quick: Annotated[bool, typer.Option("--quick", help="names and sizes alone")] = False,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check every byte of a dataset against its id.

    Every damage is listed: array, chunk, what was expected, what was found. Exit 4 where there is any, or a file that
    does not belong there.
    """
    from alberta_data.errors import DamagedDatasetError

    with places.opened(dataset, data_dir, id, quiet=quiet) as found:
        with Progress("verify", unit="bytes", quiet=quiet) as progress:
            report = found.verify(quick=quick, progress=progress)
        if as_json:
            output.put_json(_described(found, report, quick))
        else:
            _tell(found, report, quick)
        if not report.ok:
            wrong = len(report.damages) + len(report.strays)
            raise DamagedDatasetError(
                f"{found.store.name} must be what was written, got {wrong} file{'s' * (wrong > 1)} that "
                f"{'are' if wrong > 1 else 'is'} not: fetch it or make it again"
            )


def _tell(dataset: Any, report: Any, quick: bool) -> None:
    for damage in report.damages:
        output.put(f"damaged: {damage}")
    for name in report.strays:
        output.put(f"foreign: {name} is not a file of the dataset")
    for name in report.notes:
        output.put(f"note: {name} is not a file of the dataset, and does no harm")
    if report.ok and quick:
        output.put(f"names and sizes are right, nothing was read: {dataset.store.name}, id {dataset.id}")
    elif report.ok:
        output.put(f"whole: {dataset.store.name}, {numbers.bytes_text(report.checked)} checked, id {dataset.id}")


def _described(dataset: Any, report: Any, quick: bool) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "path": dataset.store.name,
        "ok": report.ok,
        "quick": quick,
        "checked": report.checked,
        "damages": [{"array": d.array, "chunk": d.chunk, "message": str(d)} for d in report.damages],
        "strays": report.strays,
        "notes": report.notes,
    }
