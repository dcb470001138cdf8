"""A dataset by whatever a person names it with: path, name, digits of its id, or an address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import options, output

UNCHECKED = ", not checked against one you were given: --id does"

Id = Annotated[str | None, typer.Option("--id", metavar="DIGITS", help="the id that it must have, all 64 digits")]
CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="FOLDER", help="where what comes from an address is kept; else in this user's"),
    options.APath,
]
Place = Annotated[str, typer.Argument(metavar="DATASET", help=f"{options.NAMED}; or an address", show_default=False)]


@contextmanager
def opened(
    place: str, data_dir: Path | None = None, id: str | None = None, cache_dir: Path | None = None, quiet: bool = False
) -> Iterator[Any]:
    """Yield the dataset at a place, its id checked against the one given.

    Raises:
        ArgumentError: nothing is named so, or an id of other than 64 digits.
        RefusedError: another id.
    """
    from alberta_data.dataset.opened import open_dataset
    from alberta_data.store.sources import check_id, is_address

    wanted = check_id(id)
    source: Any = place
    if is_address(place):
        from alberta_data.store.addresses import local_path, open_address

        settings = {} if cache_dir is None else {"cache_dir": cache_dir}
        source = local_path(place) or open_address(place, id=wanted, **settings)
    with open_dataset(source, data_dir=data_dir) as dataset:
        if wanted is not None:
            _check(dataset, wanted)
        elif is_address(place) and not quiet:
            output.say(f"id {dataset.id}{UNCHECKED}")
        yield dataset


def _check(dataset: Any, wanted: str) -> None:
    from alberta_data.errors import RefusedError

    if dataset.id != wanted:
        raise RefusedError(f"{dataset.store.name} must have the id {wanted}, got {dataset.id}: not the one you named")
