"""A dataset from its stream: one id whatever the way, whole or not there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from alberta_data import generation
from alberta_data.dataset import create_dataset, dataset_name, open_dataset, plan_dataset
from alberta_data.errors import ArgumentError, DestinationError
from alberta_data.streams.scaled import ScaledStreamWrapper, even_scales
from alberta_data.streams.synthetic import AbruptChangeStream, SuttonExperiment1Stream
from tests.streams.test_definitions import Counter

STREAM = AbruptChangeStream(3, change_interval=7)


def files_of(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(Path(path).rglob("*")) if p.is_file()}


def generate(*arguments, env=None, **options):
    command = [sys.executable, "-m", "alberta_data", "generate", *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True, **options)


def test_what_is_stored_is_what_the_stream_gives(tmp_path):
    dataset = create_dataset(STREAM, steps=5000, seed=4, path=tmp_path / "a.zarr")
    parts = list(generation.blocks(STREAM, 4, 5000))
    assert np.array_equal(dataset.observations[:], np.concatenate([block.observations for block, _ in parts]))
    assert np.array_equal(dataset.targets[:], np.concatenate([block.targets for block, _ in parts]))
    assert dataset.spec == STREAM.spec(4, 5000)
    assert dataset.about == {"licence": "CC0-1.0"}


@pytest.mark.parametrize("steps", [1, 2, 999, 1000, 1001])
def test_one_id_over_chunk_sizes_block_lengths_and_codecs(tmp_path, steps):
    ways = [{}, {"chunk_steps": 1}, {"chunk_steps": 7, "block_steps": 1}, {"block_steps": 7, "codec": "fast"},
            {"chunk_steps": min(steps, 501), "codec": "small"}]  # fmt: skip
    ids = {create_dataset(STREAM, steps=steps, path=tmp_path / f"{n}.zarr", **way).id for n, way in enumerate(ways)}
    assert len(ids) == 1


def test_two_runs_of_one_call_leave_byte_identical_directories(tmp_path):
    for name in ("a", "b"):
        create_dataset(STREAM, steps=140_000, path=tmp_path / f"{name}.zarr", codec="fast")
    assert files_of(tmp_path / "a.zarr") == files_of(tmp_path / "b.zarr")


@pytest.mark.parametrize("env", [
    {"JAX_THREEFRY_PARTITIONABLE": "0"}, {"JAX_DEFAULT_PRNG_IMPL": "rbg"}, {"JAX_ENABLE_X64": "1"},
    {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, {"JAX_PLATFORMS": "tpu"}, {"JAX_NUMPY_RANK_PROMOTION": "raise"},
])  # fmt: skip
def test_one_id_whatever_the_environment_says(tmp_path, env):
    expected = create_dataset(AbruptChangeStream(20), steps=3000, seed=7, path=tmp_path / "here.zarr").id
    said = generate("abrupt", "--steps", 3000, "--seed", 7, "-o", tmp_path / "there.zarr", env=env)
    assert said.returncode == 0, said.stderr
    assert open_dataset(tmp_path / "there.zarr").id == expected


def test_fast_math_is_refused_and_nothing_is_written(tmp_path):
    env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    said = generate("abrupt", "--steps", 10, "-o", tmp_path / "a.zarr", env=env)
    assert said.returncode == 2
    assert "fast-math" in said.stderr
    assert not list(tmp_path.iterdir())


def test_a_library_call_that_finds_jax_running_unpinned_gives_the_same_id_through_a_child(tmp_path):
    expected = create_dataset(STREAM, steps=2000, path=tmp_path / "here.zarr").id
    code = (
        "import jax; jax.numpy.zeros(1).block_until_ready()\n"
        "from alberta_data import AbruptChangeStream, create_dataset\n"
        f"d = create_dataset(AbruptChangeStream(3, change_interval=7), steps=2000, path={str(tmp_path / 'c.zarr')!r})\n"
        "print(d.id, d.reproduce().identical, d.hidden(3, 5)['true_weights'].shape)"
    )
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert said.stdout.split() == [expected, "True", "(2,", "3)"], said.stderr
    assert "child process" in said.stderr


def test_a_process_forked_after_jax_has_started_gives_a_right_result(tmp_path):
    expected = create_dataset(STREAM, steps=2000, path=tmp_path / "here.zarr").id
    code = (
        "import os, alberta_data\n"
        "from alberta_data import AbruptChangeStream, create_dataset\n"
        "import jax; jax.numpy.zeros(1).block_until_ready()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    stream = AbruptChangeStream(3, change_interval=7)\n"
        f"    d = create_dataset(stream, steps=2000, path={str(tmp_path / 'f.zarr')!r})\n"
        "    print(d.id, flush=True); os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stdout.split() == [expected], said.stderr


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_an_interrupted_generate_goes_on_to_the_undisturbed_id(tmp_path, number, status):
    path = tmp_path / "a.zarr"
    command = [sys.executable, "-m", "alberta_data", "generate", "abrupt", "--steps", "3e6", "-o", str(path)]
    process = subprocess.Popen([*command, "--chunk-steps", "65536"], stderr=subprocess.DEVNULL)
    journal = tmp_path / "a.zarr.partial" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") > 1):
        time.sleep(0.01)
    process.send_signal(number)
    process.wait()
    assert process.returncode == status
    assert not path.exists()
    with pytest.raises(DestinationError, match="begun with other settings"):
        create_dataset(AbruptChangeStream(20), steps=3_000_000, seed=1, path=path)
    made = create_dataset(AbruptChangeStream(20), steps=3_000_000, path=path)
    assert made.id == create_dataset(AbruptChangeStream(20), steps=3_000_000, path=tmp_path / "b.zarr").id
    assert made.verify().ok


def test_a_finished_destination_is_found_and_another_spec_is_refused(tmp_path):
    first = create_dataset(STREAM, steps=100, path=tmp_path / "a.zarr")
    before = files_of(first.path)
    assert create_dataset(STREAM, steps=100, path=tmp_path / "a.zarr").id == first.id
    with pytest.raises(DestinationError, match="seed"):
        create_dataset(STREAM, steps=100, seed=1, path=tmp_path / "a.zarr")
    assert files_of(first.path) == before
    assert create_dataset(STREAM, steps=100, seed=1, path=tmp_path / "a.zarr", overwrite=True).spec["seed"] == 1


@pytest.mark.parametrize(("options", "message"), [
    ({"steps": 0}, "steps must be"), ({"steps": 2**31}, "at most 2147483647"), ({"steps": 10, "seed": -1}, "seed"),
    ({"steps": 10, "chunk_steps": 0}, "chunk_steps"), ({"steps": 10, "codec": "zip"}, "codec must be one of"),
    ({"steps": 10**7, "chunk_steps": 100}, "20,000|20000"), ({"steps": 10, "block_steps": 0}, "block_steps"),
])  # fmt: skip
def test_a_bad_argument_is_refused_and_nothing_is_written(tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        create_dataset(STREAM, path=tmp_path / "a.zarr", **options)
    assert not list(tmp_path.iterdir())


def test_a_plan_says_what_making_would_take_and_writes_nothing(tmp_path):
    plan = plan_dataset(AbruptChangeStream(20), steps=10**7, data_dir=tmp_path / "data")
    assert plan.path == tmp_path / "data" / "abrupt-d20-1e7-s0.zarr"
    assert 840e6 < plan.size < 850e6
    assert plan.files < 400
    assert not list(tmp_path.iterdir())


def test_steps_are_whole_numbers_of_any_type(tmp_path):
    made = create_dataset(STREAM, steps=1e3, path=tmp_path / "a.zarr")
    assert made.id == create_dataset(STREAM, steps=np.int64(1000), path=tmp_path / "b.zarr").id
    assert type(made.spec["steps"]) is int
    for steps in (float("inf"), float("nan"), "abc", None, 1.5):
        with pytest.raises(ArgumentError, match="steps must be a whole number"):
            create_dataset(STREAM, steps=steps, path=tmp_path / "c.zarr")


def test_a_stream_of_ones_own_is_stored_as_external_and_not_made_again(tmp_path):
    made = create_dataset(Counter(), steps=300, path=tmp_path / "a.zarr", parameters={"width": 2})
    assert made.spec["kind"] == "external"
    assert made.spec["stream"].endswith("Counter")
    assert made.observations[299].tolist() == [299, 299]
    assert make_error(made.reproduce).exit_code == 8


def make_error(call):
    from alberta_data.errors import AlbertaDataError

    try:
        call()
    except AlbertaDataError as err:
        return err
    raise AssertionError("no error")


@pytest.mark.parametrize(("stream", "steps", "name"), [
    (AbruptChangeStream(20, change_interval=500), 10**7, "abrupt-change-interval500-d20-1e7-s0.zarr"),
    (AbruptChangeStream(20), 300_001, "abrupt-d20-300001-s0.zarr"),
    (AbruptChangeStream(5, noise_std=0.05), 1500, "abrupt-noise-std0.05-d5-1500-s0.zarr"),
    (SuttonExperiment1Stream(), 1000, "sutton1-d20-1e3-s0.zarr"),
])  # fmt: skip
def test_a_name_says_what_is_in_a_dataset(stream, steps, name):
    assert dataset_name(stream, steps, 0) == name


def test_long_names_are_cut_to_120_characters_and_stay_different():
    streams = [
        AbruptChangeStream(20, noise_std=1 / 3 + n * 1e-9, feature_std=1 / 7, change_interval=12345678901)
        for n in range(3)
    ]
    names = {dataset_name(stream, steps, 5) for stream in streams for steps in (10**6 + 1, 2)}
    scaled = dataset_name(ScaledStreamWrapper(AbruptChangeStream(9), even_scales(9, 0.1, 3, True)), 10, 0)
    assert len(names) == 6
    assert max(map(len, names)) <= 120
    assert scaled.startswith("scaled-abrupt-scales")


def test_the_spec_is_canonical_json_of_seven_entries(tmp_path):
    made = create_dataset(STREAM, steps=10, path=tmp_path / "a.zarr")
    document = json.loads((tmp_path / "a.zarr" / "zarr.json").read_text())["attributes"]["alberta_data"]
    assert document["spec"] == made.spec
    assert set(document["spec"]) == {"kind", "stream", "version", "parameters", "prng", "seed", "steps"}


def test_a_wrapped_stream_of_ones_own_is_stored_with_its_scales(tmp_path):
    stream = ScaledStreamWrapper(Counter(), [2.0, 3.0])
    made = create_dataset(stream, steps=50, data_dir=tmp_path)
    assert made.observations[49].tolist() == [98, 147]
    assert made.spec["kind"] == "external"
    assert made.spec["parameters"]["feature_scales"] == [2, 3]
    assert stream.change_points(50) is None


@pytest.mark.parametrize("call", [
    lambda path: create_dataset(STREAM, steps=10, path=path),
    lambda path: create_dataset(STREAM, steps=10, path=path.with_name("a.zarr")).extend(20, path),
])  # fmt: skip
def test_no_folder_is_ever_called_like_a_packed_file(tmp_path, call):
    with pytest.raises(ArgumentError, match=r"cannot be called x\.zip"):
        call(tmp_path / "x.zip")
    assert not list(tmp_path.glob("x.zip*"))


@pytest.mark.parametrize("flags", ["'", "/some/file", "xla_cpu_max_isa=AVX2"])
def test_flags_that_are_none_are_refused_in_one_line(tmp_path, flags):
    said = generate("abrupt", "--steps", 10, "-o", tmp_path / "a.zarr", env={"XLA_FLAGS": flags})
    assert said.returncode == 2
    assert said.stderr.count("\n") == 1
    assert "XLA_FLAGS must be --name=value words" in said.stderr


def test_further_flags_are_recorded_but_no_places(tmp_path):
    env = {"XLA_FLAGS": f"--xla_cpu_enable_fast_min_max=true --xla_dump_to={tmp_path}/dump"}
    assert generate("abrupt", "--steps", 10, "-o", tmp_path / "a.zarr", env=env).returncode == 0
    flags = open_dataset(tmp_path / "a.zarr").made_with["xla_flags"]
    assert "--xla_cpu_enable_fast_min_max=true" in flags
    assert str(tmp_path) not in flags
