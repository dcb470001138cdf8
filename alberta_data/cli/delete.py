"""`alberta-data delete DATASET`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from alberta_data.cli import options, output
from alberta_data.cli.command import command


@command("alberta-data delete abrupt-d20-2e5-s0 --yes")
def delete(
    dataset: options.Dataset,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,
) -> int:
    """Remove a dataset, finished or not; nothing that is not ours ever.

    Asks first, unless --yes says not to.
    """
    from alberta_data.dataset.naming import find
    from alberta_data.store.destination import delete_dataset

    path = find(dataset, data_dir)
    if not os.path.lexists(path):
        path = Path(f"{path}.partial")
    if not yes and not _agreed(path):
        output.say(f"{path} stays")
        return 2
    delete_dataset(path)
    if not quiet:
        output.say(f"deleted {path}")
    return 0


def _agreed(path: Path) -> bool:
    """Ask, and say whether the answer is yes.

    Raises:
        ArgumentError: nobody is there to answer.
    """
    from alberta_data.errors import ArgumentError

    if sys.stdin is None or not sys.stdin.isatty():
        raise ArgumentError(f"--yes must be given where nobody can be asked, got none; {path} stays")
    output.say(f"delete {path}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
