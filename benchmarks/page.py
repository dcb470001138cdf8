"""The parts of docs/performance.md that are measured: a section a release of jax, the newest first."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from benchmarks.measuring import COLUMNS, JAX, ROOT, Row

PAGE = ROOT / "docs" / "performance.md"
RELEASE = ".".join(map(str, JAX))


def machine() -> str:
    """Return one line: processor, system, versions, commit, date."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.+)", text)
    flags = re.search(r"flags\s*: (.+)", text)
    isa = [name for name in ("avx512f", "avx2") if flags and name in flags[1].split()]
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy", "gymnasium"))
    return (
        f"{os.cpu_count()} cores of {model[1] if model else platform.machine()} ({', '.join(isa) or 'no AVX2'}), "
        f"{platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}, {packages}, "
        f"commit {commit()}, {date.today().isoformat()}"
    )


def commit() -> str:
    """Return the commit that lies here, or `unknown`."""
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or "unknown"


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *lines))


def goals(rows: Iterable[Row]) -> str:
    """Return the table of goals."""
    return table(COLUMNS, [row.cells() for row in rows])


def put(kind: str, text: str) -> None:
    """Write this release's section of a kind into the page, between `<!-- kind -->` and `<!-- /kind -->`.

    Raises:
        ValueError: the page has no such place.
    """
    page = PAGE.read_text()
    found = re.search(rf"(<!-- {kind} -->\n)(.*?)(<!-- /{kind} -->)", page, re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE.name} must have a place for {kind}: <!-- {kind} --> … <!-- /{kind} -->")
    sections = read(found[2]) | {RELEASE: text}
    newest_first = sorted(sections, key=lambda release: [int(part) for part in release.split(".")], reverse=True)
    body = "".join(f"\n### jax {release}\n\n{sections[release].strip()}\n" for release in newest_first)
    PAGE.write_text(page[: found.start(2)] + body + "\n" + page[found.end(2) :])
    print(f"written: {PAGE.relative_to(ROOT)}, {kind}, jax {RELEASE}", file=sys.stderr)


def read(part: str) -> dict[str, str]:
    """Return release → text of a part of the page."""
    pieces = re.split(r"^### jax (\S+)\n", part, flags=re.MULTILINE)
    return {release: text.strip() for release, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def goals_kept(measured: Sequence[Row]) -> str:
    """Return the rows of this release's table as it stands, those of the goals just measured replaced."""
    page = re.search(r"<!-- goals -->\n(.*?)<!-- /goals -->", PAGE.read_text(), re.DOTALL)
    old = read(page[1]).get(RELEASE, "") if page else ""
    fresh = {row.goal_id for row in measured}
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in old.splitlines() if line[:3] == "| S"]
    kept = [cells for cells in lines if cells[0] not in fresh]
    rows = [*kept, *(row.cells() for row in measured)]
    return table(COLUMNS, sorted(rows, key=lambda cells: int(cells[0][1:])))
