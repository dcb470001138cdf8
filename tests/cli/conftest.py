"""A folder with a dataset in it, and commands run in it: in this process, or as a real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from alberta_data.cli.main import main

NAME = "abrupt-d20-1e5-s0"


class Ran(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of a failure."""
        lines = self.err.splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("error: "), lines
        return lines[0].removeprefix("error: ")


Cli = Callable[..., Ran]


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `datasets/` holds the dataset of the examples; not to be changed."""
    folder = tmp_path_factory.mktemp("frozen")
    code = main(["generate", "abrupt", "--steps", "1e5", "-q", "-o", str(folder / "datasets" / f"{NAME}.zarr")])
    assert code == 0
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that the commands of this test run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALBERTA_DATA_DIR", raising=False)
    return tmp_path


@pytest.fixture
def dataset(frozen: Path, here: Path) -> Path:
    """A copy of the dataset, in the data folder of `here`, that may be changed."""
    place = here / "datasets" / f"{NAME}.zarr"
    shutil.copytree(frozen / "datasets" / f"{NAME}.zarr", place)
    make_writable(place)
    return place


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def run(*words: object) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run


def process(*words: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        command(*words), cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False, **options
    )


def command(*words: object) -> list[str]:
    """Return the argument vector of the installed command."""
    return [str(Path(sys.executable).with_name("alberta-data")), *map(str, words)]


def make_writable(folder: Path) -> None:
    """Undo the read-only modes of a finished dataset."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
