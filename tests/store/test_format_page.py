"""docs/format.md: its worked example is what the code does, and what it says of itself."""

import hashlib
import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.store import ArrayDeclaration, Writer

PAGE = (Path(__file__).parents[2] / "docs/format.md").read_text("utf-8")
ROWS = {
    "observations": np.array([[1, 2], [3, 4]], np.float32),
    "targets": np.array([[0.5], [-1.5]], np.float32),
}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "d"
    entries = {"kind": "external", "stream": "example", "version": 1, "parameters": {"scale": 0.1}}
    spec = {**entries, "prng": None, "seed": None, "steps": 2}
    declarations = [ArrayDeclaration(name, "float32", rows.shape[1:]) for name, rows in ROWS.items()]
    with Writer.begin(path, spec, {}, declarations) as writer:
        writer.append(Block(0, ROWS))
        writer.finish()
        return path, writer.root


def test_each_text_on_the_page_has_the_digest_below_it():
    lines = [line.strip() for line in PAGE.splitlines()]
    pairs = [(a, b) for a, b in itertools.pairwise(lines) if a.startswith("{") and len(b) == 64]
    assert len(pairs) == 3
    for text, digest in pairs:
        assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_the_example_is_what_is_written(example):
    path, root = example
    for name, rows in ROWS.items():
        record = root.arrays[name]
        assert f"`{rows.tobytes().hex()}`" in PAGE
        assert record.leaves == (hashlib.sha256(rows.tobytes()).hexdigest(),)
        assert record.leaves[0] in PAGE
        assert f"    {record.digest(name)}\n" in PAGE
    assert f"    {root.id}\n" in PAGE
    assert f"    {(path / 'observations/c/0/0').read_bytes().hex()}\n" in PAGE
    assert f"    {(path / 'observations/zarr.json').read_text()}\n" in PAGE


def test_the_command_on_the_page_gives_the_digest():
    command = next(line for line in PAGE.splitlines() if line.strip().startswith("printf"))
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert said.split()[0] in PAGE
