"""T2: a real `generate`, killed at random moments, goes on to the undisturbed id."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from alberta_data.dataset import create_dataset, open_dataset
from alberta_data.errors import ArgumentError, IncompleteDatasetError
from alberta_data.streams.synthetic import AbruptChangeStream

STEPS = 300_000


def command(path):
    options = ["--steps", str(STEPS), "--seed", "7", "--chunk-steps", "16384", "-o", str(path), "-q"]
    return [sys.executable, "-m", "alberta_data", "generate", "abrupt", *options]


def taken_for_a_dataset(path):
    """Return the id of what lies at a path, or None where nobody would take it for a dataset."""
    try:
        return open_dataset(path).id
    except (ArgumentError, IncompleteDatasetError):
        return None


def killed_and_gone_on(path, rng, undisturbed):
    """Kill `generate` up to three times, then let it finish; return how many kills came before the end."""
    kills = 0
    for _ in range(rng.randint(1, 3)):
        process = subprocess.Popen(command(path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # From where its folder is there: how long it takes until then says only how busy the machine is.
        while process.poll() is None and not path.with_name(f"{path.name}.partial").exists():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.3) ** 2)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            kills += 1
            assert taken_for_a_dataset(path) in (None, undisturbed.id)
    assert subprocess.run(command(path), capture_output=True).returncode == 0
    made = open_dataset(path)
    assert made.id == undisturbed.id
    assert made.verify().ok
    return kills


def files_of(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def kill_often(tmp_path, times, record_property):
    undisturbed = create_dataset(
        AbruptChangeStream(20), steps=STEPS, seed=7, path=tmp_path / "u.zarr", chunk_steps=16384
    )
    rng, kills = random.Random(0), 0
    while kills < times:
        path = tmp_path / f"{kills}.zarr"
        kills += killed_and_gone_on(path, rng, undisturbed)
        assert files_of(path) == files_of(undisturbed.path)
        os.rename(path, tmp_path / "last.zarr") if kills >= times else subprocess.run(["rm", "-rf", path], check=True)
    record_property("T2", kills)
    assert kills >= times


def test_a_generate_that_is_killed_at_random_moments_leaves_the_undisturbed_bytes(tmp_path, record_property):
    kill_often(tmp_path, 20, record_property)


@pytest.mark.torture
def test_a_generate_that_is_killed_five_hundred_times_leaves_the_undisturbed_bytes(tmp_path, record_property):
    kill_often(tmp_path, 500, record_property)
