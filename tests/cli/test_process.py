"""The command as a process of its own: what the terminal, the environment and signals do to it."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from alberta_data import dataset as library
from alberta_data.cli import progress
from tests.cli.conftest import NAME, Cli, command, process

NO_JAX = """
import sys
from alberta_data.cli.main import main
for words in {words!r}:
    code = main(words)
    assert code == 0, (words, code)
loaded = sorted(name for name in {forbidden!r} if name in sys.modules)
assert not loaded, loaded
"""


def test_reading_commands_and_every_help_start_no_jax(frozen: Path) -> None:
    words = [
        [], ["generate"], ["generate", "abrupt"], ["generate", "environment"], ["show"], ["verify"], ["reproduce"],
    ]  # fmt: skip
    calls = [[*each, "--help"] for each in words]
    calls += [["streams"], ["streams", "sutton1"], ["list"], ["show", NAME], ["verify", NAME], ["diff", NAME, NAME]]
    code = NO_JAX.format(words=calls, forbidden=["jax", "jaxlib", "gymnasium", "zarr", "rich"])
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=frozen, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_plain_help_loads_nothing_that_is_slow(here: Path) -> None:
    slow = ["numpy", "json", "decimal", "pydantic", "tqdm", "alberta_data.streams.registry"]
    code = NO_JAX.format(words=[["--help"]], forbidden=slow)
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_the_terminals_characters_decide_nothing(encoding: str, frozen: Path) -> None:
    for words in (("show", NAME), ("generate", "abrupt", "--help"), ("streams",), ("show", "Ω\x1b")):
        ran = process(*words, cwd=frozen, env={"PYTHONIOENCODING": encoding}, encoding=encoding, errors="replace")
        assert ran.returncode == (2 if "Ω\x1b" in words else 0), ran.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", ran.stdout + ran.stderr)


@pytest.mark.parametrize("words", [("--help",), ("show", NAME), ("show", NAME, "--json"), ("list",)])
def test_a_closed_pipe_ends_it_with_0(words: tuple[str, ...], frozen: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(command(*words), cwd=frozen, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_full_disk_under_stdout_is_told(frozen: Path) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            command("show", NAME), cwd=frozen, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 6
    assert "No space left" in ran.stderr


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["show", "nothing-there"], 2)])
def test_what_others_left_for_the_exit_is_done_and_the_code_is_kept(words: list[str], code: int, here: Path) -> None:
    text = (
        "import atexit, sys\n"
        "from alberta_data.cli.main import script\n"
        "atexit.register(print, 'closed', end='')\n"
        f"sys.argv[1:] = {words!r}\n"
        "script()"
    )
    ran = subprocess.run([sys.executable, "-c", text], cwd=here, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.endswith("closed")) == (code, True)


def test_it_works_without_a_home_and_with_closed_streams(here: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "ALBERTA_DATA_CACHE")}
    environment["XDG_CACHE_HOME"] = "/proc/nowhere"
    text = " ".join(command("generate", "abrupt", "--steps", "1000"))
    ran = subprocess.run(["sh", "-c", f"{text} >&- 2>&- <&-"], cwd=here, env=environment, timeout=120, check=False)
    assert ran.returncode == 0
    assert (here / "datasets" / "abrupt-d20-1e3-s0.zarr" / "zarr.json").exists()


def test_what_the_environment_says_of_jax_changes_no_bit(frozen: Path, here: Path) -> None:
    variables = {
        "JAX_PLATFORMS": "cuda", "JAX_THREEFRY_PARTITIONABLE": "0", "JAX_DEFAULT_PRNG_IMPL": "rbg",
        "JAX_ENABLE_X64": "1", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "NO_COLOR": "1", "TERM": "dumb",
    }  # fmt: skip
    ran = process("generate", "abrupt", "--steps", "1e5", "-q", cwd=here, env=variables)
    assert (ran.returncode, ran.stderr) == (0, "")
    frozen_ = frozen / "datasets" / f"{NAME}.zarr"
    with library.open_dataset(here / ran.stdout.strip()) as a, library.open_dataset(frozen_) as b:
        assert a.id == b.id


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_what_the_same_command_goes_on_from(number: signal.Signals, here: Path, cli: Cli) -> None:
    words = ("generate", "abrupt", "--steps", "4e6", "--chunk-steps", "32768", "-o", "d.zarr")
    started = subprocess.Popen(command(*words), cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _until_half_written(here / "d.zarr.partial", started)
    started.send_signal(number)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 128 + number
    assert out == ""
    assert err.splitlines()[-1].endswith(": the same command goes on from what is on disk")
    assert not (here / "d.zarr").exists()
    listed = cli("list", here, "--json").json[0]
    assert 0 < listed["done"] < 1
    assert listed["resume"].startswith("alberta-data generate abrupt")
    assert "% done, goes on with: alberta-data generate abrupt" in cli("list", here).out
    ran = cli("generate", "abrupt", "--steps", "4e6", "--seed", "1", "-o", "d.zarr")
    assert (ran.code, "seed" in ran.error) == (2, True)
    assert cli("delete", "d.zarr", "--yes").code == 0
    assert not (here / "d.zarr.partial").exists()


def test_two_signals_at_once_end_it_at_once_and_it_still_goes_on(here: Path, cli: Cli) -> None:
    words = ("generate", "abrupt", "--steps", "1e6", "--chunk-steps", "32768", "-q", "-o", "d.zarr")
    started = subprocess.Popen(command(*words), cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _until_half_written(here / "d.zarr.partial", started)
    started.send_signal(signal.SIGTERM)
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=120)
    assert started.returncode in (130, 143)
    assert cli(*words).code == 0
    assert cli("verify", "d.zarr").code == 0
    undisturbed = cli("generate", "abrupt", "--steps", "1e6", "--json", "-q", "-o", "e.zarr").json["id"]
    assert cli("show", "d.zarr", "--json").json["id"] == undisturbed


def _until_half_written(partial: Path, started: subprocess.Popen[str]) -> None:
    journal = partial / "journal.jsonl"
    end = time.monotonic() + 120
    while time.monotonic() < end and started.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > 1:
            return
        time.sleep(0.005)
    raise AssertionError((started.poll(), started.communicate()))


def test_without_a_terminal_progress_is_plain_lines_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with progress.Progress("generate") as shown:
        for done in range(0, 10_000_001, 500_000):
            shown(done, 10_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert 5 < len(lines) < 20
    pattern = r"generate: [\d,]+ of 10,000,000 steps, [\d.]+k? steps/s, .* left"
    assert all(re.fullmatch(pattern, line) for line in lines), lines


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    with progress.Progress("generate", quiet=True, announcement="begins") as shown:
        shown(1, 2)
    assert capsys.readouterr().err == ""
    with progress.Progress("generate", announcement="begins") as shown:
        shown(1, 2)
    assert capsys.readouterr().err.startswith("begins\ngenerate: 1 of 2 steps")


def test_on_a_terminal_there_is_a_bar_and_stdout_stays_clean(here: Path) -> None:
    leader, follower = pty.openpty()
    words = command("generate", "abrupt", "--steps", "3e5", "--chunk-steps", "32768")
    started = subprocess.Popen(words, cwd=here, stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    out, _ = started.communicate(timeout=120)
    shown = b""
    try:
        while piece := os.read(leader, 4096):
            shown += piece
    except OSError:
        pass
    os.close(leader)
    assert (started.returncode, out) == (0, "datasets/abrupt-d20-3e5-s0.zarr\n")
    assert b"steps/s" in shown


def test_completion_offers_commands_and_streams(here: Path) -> None:
    shown = process("--show-completion", "bash", cwd=here)
    variables = {"_ALBERTA_DATA_COMPLETE": "complete_bash", "COMP_WORDS": "alberta-data generate ", "COMP_CWORD": "2"}
    ran = process(cwd=here, env=variables)
    assert "abrupt" in ran.stdout, (shown.stdout, ran.stderr)


def test_what_libraries_warn_of_is_a_plain_line(here: Path) -> None:
    words = ("generate", "environment", "CartPole-v0", "--steps", "10")
    ran = process(*words, "-o", "a.zarr", cwd=here)
    assert (ran.returncode, ran.stdout) == (0, "a.zarr\n")
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("warning: ")]
    assert "out of date" in line
    assert line.isprintable()
