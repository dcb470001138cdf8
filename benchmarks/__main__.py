"""The table of goals: `python -m benchmarks`, or some of them: `python -m benchmarks S1 S2`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks import page
from benchmarks.measuring import COLUMNS, Bench, Row


def goals() -> dict[str, Any]:
    """Return goal → its module, S1 first."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if re.match(r"s\d+_", found.name)]
    modules = [importlib.import_module(f"benchmarks.{name}") for name in names]
    return {module.GOAL: module for module in sorted(modules, key=lambda module: int(module.GOAL[1:]))}


def measured(wanted: Sequence[str], bench: Bench) -> Iterator[Row]:
    """Yield the rows of the goals wanted; say on standard error what is being measured."""
    for goal in wanted:
        start = time.perf_counter()
        yield from goals()[goal].rows(bench)
        print(f"{goal} took {time.perf_counter() - start:.0f} s", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    known = goals()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Print the table of goals.")
    parser.add_argument("goals", nargs="*", metavar="GOAL", help=f"some of {', '.join(known)}; else all")
    parser.add_argument("--write", action="store_true", help="put the rows into docs/performance.md as well")
    parser.add_argument("--small", action="store_true", help="1e7 steps in place of 1e8 and 3e7")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the system's temporary folder")
    # Sizes at which the numbers mean nothing, for the tests.
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.goals) - set(known)):
        parser.error(f"a goal must be one of {', '.join(known)}, got {', '.join(unknown)}")
    rows = []
    print(page.machine(), end="\n\n")
    print(page.table(COLUMNS, []))
    with tempfile.TemporaryDirectory(prefix="alberta-data-bench-", dir=given.folder) as folder:
        bench = Bench(Path(folder), given.tiny, given.small)
        for row in measured(given.goals or list(known), bench):
            print(f"| {' | '.join(row.cells())} |", flush=True)
            rows.append(row)
    if given.write:
        page.put("goals", f"{page.machine()}.\n\n{page.goals_kept(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
