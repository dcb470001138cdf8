"""What the README shows is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from alberta_data.streams.registry import STREAMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def commands():
    from alberta_data.cli.table import COMMANDS

    return list(COMMANDS)


def session():
    """Return the commands of the console blocks with what they print."""
    shown = "".join(text for kind, text in BLOCKS if kind == "console")
    parts = re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def steady(text):
    """Return printed lines without what differs from run to run: times, rates, lines of progress."""
    text = re.sub(r"[\d.,]+[kM]? steps/s", "… steps/s", re.sub(r"in \d+ s,", "in … s,", text))
    return [line for line in text.splitlines() if not re.match(r"\w+: [\d,]+ of [\d,]+ steps", line)]


def test_the_session_prints_what_the_readme_shows(tmp_path):
    script = Path(sys.executable).with_name("alberta-data")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ALBERTA", "JAX", "XLA"))}
    assert len(session()) == 3
    for line, expected in session():
        words = line.split()
        assert words[0] == "alberta-data"
        said = subprocess.run([script, *words[1:]], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        assert steady(said.stderr + said.stdout) == steady(expected)


def test_the_python_of_the_readme_runs_and_proves_itself(tmp_path):
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 6
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert re.fullmatch(r"[0-9a-f]{16} [\d.]+\n", said.stdout)


@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_stands_in_the_readme(name):
    assert f"| `{name}` |" in README


@pytest.mark.parametrize("name", commands())
def test_every_command_stands_in_the_readme(name):
    assert f"`{name}`" in README


def test_the_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if "://" not in link)
