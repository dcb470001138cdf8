"""The options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alberta_data.cli import numbers
from alberta_data.cli.command import Reads
from alberta_data.errors import ArgumentError


def read_path(option: str, text: str) -> Path:
    """Return a path.

    Raises:
        ArgumentError: an empty text, or one with a zero byte.
    """
    if not text or "\0" in text:
        raise ArgumentError(f"{option} must be a path, got {text!r:.80}")
    return Path(text)


Whole = Reads(numbers.read_whole)
Count = Reads(numbers.read_count)
Real = Reads(numbers.read_real)
APath = Reads(read_path)

NAMED = "its path, its name in the data folder, or 8 or more first digits of its id"

Dataset = Annotated[str, typer.Argument(metavar="DATASET", help=NAMED, show_default=False)]
Steps = Annotated[
    int,
    typer.Option("--steps", "--num-steps", metavar="N", help="how many steps: 1000, 1e7, 10M, 10_000_000"),
    Count,
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="PATH", help="where it goes; else a name that says what is in it, in the data folder"
    ),
    APath,
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="FOLDER", help="the data folder; else ALBERTA_DATA_DIR, else ./datasets"),
    APath,
]
ChunkSteps = Annotated[
    int | None, typer.Option("--chunk-steps", metavar="N", help="steps in a chunk file, in place of the usual"), Count
]
Codec = Annotated[
    str | None, typer.Option("--codec", metavar="none|fast|small", help="how chunks are compressed; else none")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace one of our own datasets; nothing else ever is")]
Force = Annotated[bool, typer.Option("--force", help="allow more than 20,000 files")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="say what it would take, write nothing")]
Json = Annotated[bool, typer.Option("--json", help="print JSON to stdout")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="no progress, errors alone")]
AllowImport = Annotated[
    list[str] | None,
    typer.Option("--allow-import", metavar="NAME", help="a module that may be imported for an environment's id"),
]
