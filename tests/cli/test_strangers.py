"""A dataset or a recipe is a stranger's data: no command runs, imports, opens or believes what stands in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.store import ArrayDeclaration, Writer
from tests.cli.conftest import NAME, Cli

READING = ("show", "list", "verify", "learn", "diff", "recipe", "card", "pack", "reproduce", "extend")
NASTY = "x\x1b[2J\x1b]0;owned\x07\u202e\u2028error: forged\r\n[bold red]y[/bold red]\x9b31m"


@pytest.fixture
def strange(here: Path) -> Callable[..., Path]:
    """Write a dataset, right in every digest, whose spec and words are a stranger's."""

    def write(name: str, spec: dict[str, Any], **root: Any) -> Path:
        declarations = [
            ArrayDeclaration("observations", "float32", (2,), columns=root.pop("columns", None)),
            ArrayDeclaration("actions", "int64", (1,)),
            ArrayDeclaration("rewards", "float64", ()),
            ArrayDeclaration("terminated", "bool", ()),
            ArrayDeclaration("truncated", "bool", ()),
            ArrayDeclaration("episode_start", "bool", ()),
            ArrayDeclaration("targets", "float32", (1,)),
            ArrayDeclaration("final_observations", "float32", (2,), by_step=False),
        ]
        steps = spec["steps"]
        with Writer.begin(here / name, spec, root.pop("made_with", {}), declarations) as writer:
            rows = {d.name: np.zeros((steps, *d.row_shape), d.dtype) for d in declarations if d.by_step}
            writer.append(Block(0, rows), None, {"final_observations": np.zeros((1, 2), np.float32)})
            writer.finish(about=root.pop("about", {}))
        return here / name

    return write


def environment(env_id: str, **changed: Any) -> dict[str, Any]:
    """Return a spec that nobody's collector has written."""
    return {**EnvironmentStream("CartPole-v1").spec(0, 50), "stream": env_id, **changed}


@pytest.mark.parametrize("env_id", ["canary:X-v0", "os:system", "GymV26Environment-v0", "../canary", "canary:main"])
def test_no_command_imports_or_makes_what_a_spec_names(
    env_id: str, cli: Cli, strange: Callable[..., Path], here: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("T10", len(READING))
    (here / "canary.py").write_text("import pathlib\npathlib.Path('imported').touch()\n")
    place = strange("s.zarr", environment(env_id))
    for name in READING:
        extra = {"diff": [place], "extend": ["--steps", "99"], "list": []}.get(name, [])
        ran = cli(name, here if name == "list" else place, *extra)
        assert ran.code in (0, 2, 5, 8), (name, ran.err)
        assert not (here / "imported").exists()
        assert "canary" not in sys.modules
    assert cli("reproduce", place).code in (5, 8)
    assert cli("verify", place).code == 0


def test_reproduce_names_what_it_would_import(
    cli: Cli, strange: Callable[..., Path], record_property: Callable[[str, object], None]
) -> None:
    record_property("T10", 1)
    ran = cli("reproduce", strange("s.zarr", environment("canary:X-v0")))
    assert (ran.code, "--allow-import canary" in ran.err) == (5, True)


def test_no_word_of_a_stranger_moves_the_cursor_or_forges_a_line(
    cli: Cli, strange: Callable[..., Path], here: Path, record_property: Callable[[str, object], None]
) -> None:
    about = dict.fromkeys(("title", "description", "licence", "citation"), NASTY)
    spec = environment("CartPole-v1", parameters={**environment("x")["parameters"], "policy": "custom:" + NASTY})
    place = strange("s.zarr", spec, about={**about, "creators": [NASTY]}, made_with={"platform": NASTY})
    other = strange("t.zarr", environment("CartPole-v1"))
    for words in (
        ("show", place), ("show", place, "--json"), ("list", here), ("list", here, "--json"), ("verify", place),
        ("diff", place, other), ("recipe", place), ("card", place), ("card", place, "--croissant"),
        ("learn", place), ("reproduce", place), ("reproduce", place, "--debug"), ("extend", place, "--steps", "99"),
    ):  # fmt: skip
        ran = cli(*words)
        text = ran.out + ran.err
        assert all(line.isprintable() for line in text.split("\n")), (words, text)
        # A card's block of code may show a citation of several lines.
        forged = ("error: forged",) if words[0] == "card" else ("error: forged", "[bold")
        assert not any(line.startswith(forged) for line in text.split("\n")), (words, text)
        assert ran.code != 70, ran.err
        record_property("T10", 1)


AUDIT = """
import json, os, sys
allowed = [os.path.realpath(path) for path in json.loads(sys.argv[1])]
seen = []

def hook(event, args):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "socket.connect"):
        seen.append((event, str(args)))
    if event == "open" and isinstance(args[0], (str, bytes)):
        writes = isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        path = os.path.realpath(os.fsdecode(args[0]))
        if writes and path != os.devnull and not any(path.startswith(each) for each in allowed):
            seen.append((event, path))
    if event == "import" and args[0].partition(".")[0] in ("canary", "pickle5"):
        seen.append((event, args[0]))

from alberta_data.cli.main import main
sys.addaudithook(hook)
code = main(sys.argv[2:])
assert not seen, seen
sys.exit(code)
"""


@pytest.mark.parametrize("words", [("show",), ("verify",), ("learn", "-o", "run")], ids=lambda words: words[0])
def test_reading_starts_no_process_no_connection_and_writes_only_where_told(
    words: tuple[str, ...], dataset: Path, here: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("T11", 1)
    (here / "canary.py").write_text("raise SystemExit('imported')")
    cache = here / "cache"
    allowed = json.dumps([str(here / "run"), str(cache)])
    call = [sys.executable, "-B", "-c", AUDIT, allowed, words[0], NAME, *words[1:]]
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(cache), "HOME": str(here / "home")}
    ran = subprocess.run(call, cwd=here, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
