"""What the Python examples share: a command run, its JSON read, a table printed."""

import json
import subprocess
import sys
from pathlib import Path


def alberta_data(*words: object) -> dict:
    """Print and run `alberta-data …`, and return what it says with `--json`."""
    words = [str(word) for word in words]
    print("$ alberta-data", *words, flush=True)
    command = Path(sys.executable).with_name("alberta-data")
    ran = subprocess.run([command if command.exists() else "alberta-data", *words, "--json"], stdout=subprocess.PIPE)
    if ran.returncode:
        sys.exit(ran.returncode)
    return json.loads(ran.stdout)


def print_table(head: list[str], rows: list[list[object]]) -> None:
    """Print rows with their columns aligned."""
    lines = [head, *([f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print()
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def parameters(learner: dict) -> str:
    """Return a learner of a receipt in a few words: `idbd 0.05 0.01`."""
    optimizer = dict(learner["optimizer"])
    words = [optimizer.pop("type"), *(f"{value:.3g}" for value in optimizer.values())]
    return " ".join(words) + (f" + {learner['normalizer']['type']}" if learner["normalizer"] else "")
