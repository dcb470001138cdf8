"""Runs: what `learn` leaves, that it repeats, resumes, and is whole or not there."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

import jax
import numpy as np
import pytest
import zarr

from alberta_data.blocks import Block
from alberta_data.dataset import create_dataset, open_dataset
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.errors import (
    ArgumentError,
    DamagedDatasetError,
    DestinationError,
    DifferenceFound,
    NonFiniteError,
    RefusedError,
)
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner, OnlineNormalizer
from alberta_data.replay import learn_from_trajectory, run_learning_loop
from alberta_data.runs import (
    check_receipt,
    final_states,
    learn,
    noise_floor,
    passing,
    plan_learning,
    read_receipt,
    read_run,
    request,
)
from alberta_data.store.canonical import dumps
from alberta_data.streams.synthetic import (
    AbruptChangeStream,
    CyclicStream,
    ScaledStreamWrapper,
    SuttonExperiment1Stream,
)

STEPS = 30_011
GRID = [
    LinearLearner(LMS(0.01)),
    LinearLearner(LMS(0.03)),
    LinearLearner(IDBD(0.02, 0.01)),
    LinearLearner(Autostep(), OnlineNormalizer()),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "abrupt.zarr"
    create_dataset(AbruptChangeStream(5), steps=STEPS, seed=3, path=path)
    with open_dataset(path) as found:
        yield found


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    return learn(dataset, GRID, path=tmp_path_factory.mktemp("runs") / "run", metrics="full")


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def files(folder):
    """Every file below a folder, path → bytes."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def test_a_member_has_the_metrics_and_the_state_of_the_learner_alone(dataset, run):
    stored = zarr.open_group(run.path / "metrics.zarr", mode="r")["metrics"][:]
    assert stored.shape == (STEPS, 4, 4)
    for place, learner in enumerate(GRID):
        state, metrics = learn_from_trajectory(learner, dataset)
        assert np.array_equal(stored[:, place, : len(learner.columns)], metrics)
        assert same(run.states[place], state)
        assert np.isnan(stored[:, place, len(learner.columns) :]).all()


def test_curves_are_a_zarr_group_of_a_thousand_windows(dataset, run):
    group = zarr.open_group(run.path / "curves.zarr", mode="r")
    assert sorted(group.array_keys()) == ["edges", "max", "mean", "min"]
    assert group.attrs["columns"] == ["squared_error", "error", "mean_step_size", "normalizer_mean_var"]
    _, metrics = learn_from_trajectory(GRID[2], dataset)
    edges = group["edges"][:]
    assert (edges[0], edges[-1], len(edges)) == (0, STEPS, 1001)
    for window in (0, 1, 500, 999):
        part = np.asarray(metrics, np.float64)[edges[window] : edges[window + 1]]
        np.testing.assert_allclose(group["mean"][window, 2, :3], part.mean(axis=0), rtol=1e-12)
        assert np.array_equal(group["min"][window, 2, :3], part.min(axis=0))
        assert np.array_equal(group["max"][window, 2, :3], part.max(axis=0))


def test_the_receipt_says_what_was_learned_and_what_came_of_it(dataset, run):
    receipt = read_receipt(run.path)
    assert (run.path / "receipt.json").read_bytes() == dumps(receipt)
    assert receipt["run"]["dataset"] == dataset.id
    assert receipt["run"]["range"] == [0, STEPS]
    assert receipt["run"]["learners"][2]["optimizer"] == {
        "type": "idbd",
        "initial_step_size": 0.02,
        "meta_step_size": 0.01,
    }
    assert receipt["noise_floor"] == pytest.approx(0.01)
    assert receipt["made_with"]["jax"] == jax.__version__
    _, metrics = learn_from_trajectory(GRID[1], dataset)
    errors = np.asarray(metrics, np.float64)[:, 0]
    results = receipt["members"][1]["results"]
    assert results["mean_squared_error"] == pytest.approx(errors.mean())
    assert results["last_tenth"] == pytest.approx(errors[9 * STEPS // 10 :].mean())
    assert results["tenths"] == pytest.approx(
        [errors[k * STEPS // 10 : (k + 1) * STEPS // 10].mean() for k in range(10)]
    )
    assert results["mean_step_size"] == pytest.approx(0.03, rel=1e-6)
    best = min(range(4), key=lambda place: receipt["members"][place]["results"]["mean_squared_error"])
    assert run.ranked[0] == best


def test_nothing_of_the_machine_or_the_hour_is_in_a_run(dataset, run, tmp_path):
    again = learn(dataset, GRID, path=tmp_path / "again", metrics="full")
    assert files(again.path) == files(run.path)
    text = json.dumps(run.receipt)
    assert str(tmp_path.parent) not in text
    assert os.uname().nodename not in text


def test_states_are_stored_without_pickles(run):
    with np.load(run.path / "states.npz", allow_pickle=False) as found:
        assert "member3/learner_state/optimizer_state/step_sizes" in found.files
        assert "member0/optimizer_state/step_size" in found.files
    assert same(final_states(run.path, GRID, 5), run.states)


def test_a_finished_run_is_learned_again_and_compared_and_nothing_is_written(dataset, run):
    before = files(run.path)
    again = learn(dataset, GRID, path=run.path)
    assert again.digest == run.digest
    assert files(run.path) == before
    assert check_receipt(run.path, dataset).digest == run.digest
    assert check_receipt(run.path / "receipt.json", dataset).digest == run.digest


def test_a_receipt_with_another_digest_is_a_difference(dataset, run, tmp_path):
    receipt = read_receipt(run.path)
    receipt["digest"] = "0" * 64
    receipt["members"][2]["digest"] = "1" * 64
    (tmp_path / "receipt.json").write_bytes(dumps(receipt))
    with pytest.raises(DifferenceFound, match="member 2 is the first"):
        check_receipt(tmp_path, dataset)


def test_a_receipt_that_is_none_is_refused(dataset, run, tmp_path):
    with pytest.raises(DestinationError, match=r"receipt\.json"):
        check_receipt(tmp_path, dataset)
    (tmp_path / "receipt.json").write_text("{}")
    with pytest.raises(RefusedError):
        check_receipt(tmp_path, dataset)
    receipt = read_receipt(run.path)
    for change in ({"range": [0]}, {"learners": []}, {"learners": [{"type": "x"}]}, {"surplus": 1}, {"dataset": "00"}):
        (tmp_path / "receipt.json").write_bytes(dumps({**receipt, "run": {**receipt["run"], **change}}))
        with pytest.raises(ArgumentError):
            check_receipt(tmp_path, dataset)


def test_members_of_other_grids_have_the_same_digest(dataset, run, tmp_path):
    alone = learn(dataset, GRID[2], path=tmp_path / "alone")
    assert alone.members[0]["digest"] == run.members[2]["digest"]


@pytest.mark.parametrize("seconds", [0.0, 0.02])
@pytest.mark.parametrize("groups_behind", [0, 1, 4])
def test_a_run_does_not_depend_on_who_tallies_when(dataset, run, tmp_path, monkeypatch, groups_behind, seconds):
    tally, busy = passing.Pass._tally, set()

    def slowly(self, found):
        group = tuple(found.members)
        assert group not in busy
        busy.add(group)
        time.sleep(seconds)
        tally(self, found)
        busy.remove(group)

    monkeypatch.setattr(passing, "_GROUPS_BEHIND", groups_behind)
    monkeypatch.setattr(passing.Pass, "_tally", slowly)
    monkeypatch.setattr(request, "BLOCK_BYTES", 4 * 16 * 4096)
    assert learn(dataset, GRID, path=tmp_path / "run").digest == run.digest


def test_a_tally_that_fails_ends_the_run(dataset, tmp_path, monkeypatch):
    def fails(self, found):
        raise Interrupted

    monkeypatch.setattr(passing.Pass, "_tally", fails)
    with pytest.raises(Interrupted):
        learn(dataset, GRID, path=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(
    "options", [{"every": 300}, {"metrics": "full", "track_step_sizes": 700, "track_normalizer": 900}]
)
@pytest.mark.parametrize("stop_at", [1, 9_000, 29_000])
def test_an_interrupted_run_resumes_to_the_same_bytes(dataset, tmp_path, monkeypatch, stop_at, options):
    whole = learn(dataset, GRID, path=tmp_path / "whole", **options)
    monkeypatch.setattr(passing, "SAVE_WEIGHTS", 1)
    monkeypatch.setattr(request, "BLOCK_BYTES", 4 * 16 * 1024)

    def stop(done, total):
        if done >= stop_at:
            raise Interrupted

    with pytest.raises(Interrupted):
        learn(dataset, GRID, path=tmp_path / "cut", progress=stop, **options)
    assert not (tmp_path / "cut").exists()
    with pytest.raises(DestinationError, match="--resume"):
        learn(dataset, GRID, path=tmp_path / "cut", **options)
    seen = []
    resumed = learn(
        dataset, GRID, path=tmp_path / "cut", resume=True, progress=lambda done, total: seen.append(done), **options
    )
    assert files(resumed.path) == files(whole.path)
    assert seen[0] > stop_at - 1024
    assert not (tmp_path / "cut.partial").exists()


def test_an_unfinished_run_of_another_is_not_gone_on_with(dataset, tmp_path):
    def stop(done, total):
        raise Interrupted

    with pytest.raises(Interrupted):
        learn(dataset, GRID, path=tmp_path / "run", progress=stop)
    with pytest.raises(DestinationError, match="same range"):
        learn(dataset, GRID, path=tmp_path / "run", start=5, resume=True)
    found = learn(dataset, GRID[:1], path=tmp_path / "run", overwrite=True)
    assert found.path == tmp_path / "run"


def test_another_run_at_the_place_is_replaced_only_when_asked_to(dataset, tmp_path):
    first = learn(dataset, GRID[:1], path=tmp_path / "run")
    with pytest.raises(DestinationError, match="another run"):
        learn(dataset, GRID[1:2], path=tmp_path / "run")
    assert read_receipt(tmp_path / "run") == first.receipt
    second = learn(dataset, GRID[1:2], path=tmp_path / "run", overwrite=True)
    assert read_receipt(tmp_path / "run") == second.receipt != first.receipt
    assert sorted(os.listdir(tmp_path)) == ["run"]


@pytest.mark.parametrize("kind", ["file", "folder", "link", "partial"])
def test_anything_foreign_at_the_place_is_left_alone(dataset, tmp_path, kind):
    place = tmp_path / "run"
    if kind == "file":
        place.write_text("mine")
    elif kind == "folder":
        place.mkdir()
        (place / "mine").write_text("mine")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "run.partial").mkdir()
        (tmp_path / "run.partial" / "mine").write_text("mine")
    before = files(tmp_path)
    for overwrite in (False, True):
        if overwrite and kind != "partial":
            continue
        with pytest.raises(DestinationError):
            learn(dataset, GRID[:1], path=place, overwrite=overwrite)
    assert files(tmp_path) == before


def test_a_range_is_learned_alone(dataset, tmp_path):
    found = learn(dataset, GRID[2], path=tmp_path / "part", start=1000, steps=2500)
    arrays = dataset.observations[1000:3500], dataset.targets[1000:3500]
    state, metrics = learn_from_trajectory(GRID[2], *arrays)
    assert same(found.states[0], state)
    assert (found.curves.edges[0], found.curves.edges[-1]) == (1000, 3500)
    np.testing.assert_allclose(found.curves.max[0, 0], np.asarray(metrics)[:2].max(axis=0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": -1}, "range"),
        ({"steps": 0}, "range"),
        ({"start": STEPS}, "range"),
        ({"start": 1, "steps": STEPS}, "range"),
        ({"target": 1}, "from 0 to 0, got 1"),
        ({"target": "up"}, "target must be one of"),
        ({"td": True}, "next_observations"),
        ({"metrics": "some"}, "windows or full"),
        ({"track_step_sizes": STEPS + 1}, "interval"),
        ({"track_normalizer": -1}, "interval"),
        ({"every": 0}, "every"),
        ({"every": -3}, "every"),
        ({"every": 2.5}, "every"),
        ({"steps": 1000.5}, "steps"),
        ({"steps": float("nan")}, "steps"),
        ({"steps": "1000"}, "steps"),
        ({"start": True}, "start"),
    ],
    ids=str,
)
def test_a_bad_request_writes_nothing(dataset, tmp_path, options, said):
    with pytest.raises(ArgumentError, match=said):
        learn(dataset, GRID, path=tmp_path / "run", **options)
    assert not list(tmp_path.iterdir())


def test_an_empty_grid_and_a_learner_of_ones_own_are_refused(dataset, tmp_path):
    with pytest.raises(ArgumentError, match="empty grid"):
        learn(dataset, [], path=tmp_path / "run")
    with pytest.raises(ArgumentError, match="learn_from_trajectory"):
        learn(dataset, [object()], path=tmp_path / "run")


def test_whole_floats_are_whole_numbers(dataset, tmp_path):
    one = learn(dataset, GRID[0], path=tmp_path / "one", start=10.0, steps=1000.0, every=np.float64(100))
    assert one.receipt["run"] == learn(dataset, GRID[0], path=one.path, start=10, steps=1000, every=100).receipt["run"]
    _, metrics = run_learning_loop(GRID[0], AbruptChangeStream(5), 100.0, 3)
    assert len(metrics) == 100
    for wrong in (100.5, float("nan"), "100", 0):
        with pytest.raises(ArgumentError, match="steps must be a whole number"):
            run_learning_loop(GRID[0], AbruptChangeStream(5), wrong, 3)


@pytest.mark.parametrize("every", [1000, 7, 5003, 10 * STEPS])
def test_windows_of_so_many_steps_are_in_the_curves_and_change_no_figure(dataset, run, tmp_path, every):
    found = learn(dataset, GRID, path=tmp_path / "run", every=every)
    assert (found.digest, found.members) == (run.digest, run.members)
    assert found.receipt["run"]["every"] == every
    group = zarr.open_group(found.path / "curves.zarr", mode="r")
    edges = [*range(0, STEPS, every), STEPS]
    assert group["edges"][:].tolist() == edges
    metrics = zarr.open_group(run.path / "metrics.zarr", mode="r")["metrics"][:]
    for window in {0, len(edges) // 2 - 1, len(edges) - 2}:
        part = metrics[edges[window] : edges[window + 1]]
        np.testing.assert_allclose(group["mean"][window], part.astype(np.float64).mean(axis=0), rtol=1e-12)
        assert np.array_equal(group["min"][window], part.min(axis=0), equal_nan=True)
        assert np.array_equal(group["max"][window], part.max(axis=0), equal_nan=True)
    again = check_receipt(found.path, dataset)
    assert np.array_equal(again.curves.mean, found.curves.mean, equal_nan=True)
    assert plan_learning(dataset, GRID, every=every).size > len(edges) - 1


def test_windows_that_would_not_fit_are_refused(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(request, "MOST_MEMBER_WINDOWS", 20_000)
    with pytest.raises(ArgumentError, match="take 7 steps or more, or metrics full"):
        learn(dataset, GRID, path=tmp_path / "run", every=5)
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_from_the_files_of_another(dataset, tmp_path):
    first = learn(dataset, GRID, path=tmp_path / "first", steps=10_000)
    second = learn(dataset, GRID, path=tmp_path / "second", start=10_000, after=read_run(tmp_path / "first"))
    assert second.receipt["run"]["after"] == first.digest
    for given in (first, read_run(first.path), read_run(first.path / "receipt.json")):
        assert check_receipt(second.path, dataset, after=given).digest == second.digest
    with pytest.raises(ArgumentError, match="went on from no other"):
        check_receipt(first, dataset, after=first)
    with pytest.raises(ArgumentError, match="got after"):
        check_receipt(second, dataset, after=second)
    (first.path / "states.npz").chmod(0o644)
    (first.path / "states.npz").write_bytes((second.path / "states.npz").read_bytes())
    with pytest.raises(RefusedError, match="vouches"):
        read_run(first.path)


def test_a_lost_member_is_marked_and_the_others_are_kept(dataset, run, tmp_path):
    found = learn(dataset, [GRID[0], LinearLearner(LMS(20.0)), GRID[1]], path=tmp_path / "run", metrics="full")
    lost = found.members[1]
    with pytest.raises(NonFiniteError) as alone:
        learn_from_trajectory(LinearLearner(LMS(20.0)), dataset)
    assert lost["stopped_at"] == alone.value.step
    assert (lost["digest"], lost["results"], found.states[1]) == (None, None, None)
    assert [found.members[place]["digest"] for place in (0, 2)] == [run.members[place]["digest"] for place in (0, 1)]
    assert np.isnan(found.curves.mean[-1, 1]).all()
    assert np.isfinite(found.curves.mean[:, 0, :3]).all()
    stored = zarr.open_group(found.path / "metrics.zarr", mode="r")["metrics"][:]
    assert np.isnan(stored[lost["stopped_at"] + 1 :, 1]).all()
    assert found.ranked[-1] == 1
    assert check_receipt(found, dataset).digest == found.digest


def test_a_run_without_a_survivor_leaves_nothing(dataset, tmp_path):
    with pytest.raises(NonFiniteError):
        learn(dataset, [LinearLearner(LMS(20.0)), LinearLearner(LMS(30.0))], path=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_more_members_than_a_pass_takes_are_learned_in_several(dataset, run, tmp_path, monkeypatch):
    monkeypatch.setattr(request, "MEMBERS_A_PASS", 3)
    assert plan_learning(dataset, GRID).passes == 2
    found = learn(dataset, GRID, path=tmp_path / "run")
    assert found.digest == run.digest
    assert same(found.states, run.states)
    assert np.array_equal(found.curves.mean, run.curves.mean, equal_nan=True)
    with pytest.raises(ArgumentError, match="one pass"):
        learn(dataset, GRID, path=tmp_path / "full", metrics="full")


def test_a_plan_writes_nothing_and_names_the_place(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = plan_learning(dataset, GRID)
    assert (plan.members, plan.passes, plan.steps) == (4, 1, STEPS)
    assert plan.path.parent.name == "runs"
    assert plan.path.name.startswith("abrupt-")
    assert len(plan.path.name) == len("abrupt-") + 8
    assert not list(tmp_path.iterdir())
    assert learn(dataset, GRID).path == plan.path


def test_histories_are_stored_for_every_member(dataset, tmp_path):
    found = learn(dataset, GRID, path=tmp_path / "run", track_step_sizes=5000, track_normalizer=10_000)
    group = zarr.open_group(found.path / "histories.zarr", mode="r")
    assert group["step_size_steps"][:].tolist() == list(range(0, STEPS, 5000))
    assert group["normalizer_steps"][:].tolist() == [0, 10_000, 20_000, 30_000]
    assert group["step_sizes"].shape == (7, 4, 6)
    assert (group["step_sizes"][:, 1] == np.float32(0.03)).all()
    assert np.isnan(group["step_size_normalizers"][:, :3]).all()
    assert np.isfinite(group["mean"][:, 3]).all()
    assert np.isnan(group["var"][:, 2]).all()


def test_a_run_goes_on_from_another_with_its_states(dataset, tmp_path):
    whole = learn(dataset, GRID, path=tmp_path / "whole")
    first = learn(dataset, GRID, path=tmp_path / "first", steps=10_000)
    second = learn(dataset, GRID, path=tmp_path / "second", start=10_000, after=first)
    assert same(second.states, whole.states)
    assert second.receipt["run"]["after"] == first.digest
    with pytest.raises(ArgumentError, match="must be given as after"):
        check_receipt(second, dataset)
    assert check_receipt(second, dataset, after=first).digest == second.digest


def test_a_run_over_other_features_is_not_gone_on_from(dataset, tmp_path):
    first = learn(dataset, GRID, path=tmp_path / "first", steps=1000)
    other = create_dataset(AbruptChangeStream(4), steps=1000, path=tmp_path / "other.zarr")
    with pytest.raises(ArgumentError, match="after must be a run over 4 features, got one over 5"):
        learn(other, GRID, path=tmp_path / "second", after=first)
    assert not (tmp_path / "second").exists()


def test_a_run_killed_before_its_last_rename_begins_again(dataset, run, tmp_path):
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "receipt.json").write_bytes((run.path / "receipt.json").read_bytes())
    assert learn(dataset, GRID, path=tmp_path / "run", metrics="full").digest == run.digest
    assert files(tmp_path / "run") == files(run.path)


@dataclass
class Shaped:
    """An array of a stub: its shape."""

    shape: tuple[int, ...]


@dataclass
class Stub:
    """A dataset of arrays in memory."""

    rows: dict[str, np.ndarray]
    id: str = "ab" * 32
    spec: dict = field(default_factory=lambda: {"stream": "mine", "parameters": {}})
    target_columns: tuple[str, ...] = ("a", "b")

    @property
    def steps(self):
        return len(self.rows["observations"])

    @property
    def arrays(self):
        return {name: Shaped(array.shape) for name, array in self.rows.items()}

    def blocks(self, start, stop, names, *, block_steps):
        for first in range(start, stop, block_steps):
            last = min(first + block_steps, stop)
            yield Block(first, {name: self.rows[name][first:last] for name in names})


def test_target_columns_are_members(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)).astype(np.float32)
    stub = Stub({"observations": x, "targets": np.stack([x[:, 0], x[:, 1] * 2], axis=1)})
    both = learn(stub, GRID[:2], path=tmp_path / "both")
    assert [(member["learner"], member["target"]) for member in both.members] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    one = learn(stub, GRID[:2], path=tmp_path / "one", target="b")
    assert [member["digest"] for member in one.members] == [both.members[place]["digest"] for place in (1, 3)]
    assert check_receipt(one.path, stub).digest == one.digest


def test_transitions_are_learned_from_with_td(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)).astype(np.float32)
    rows = {
        "observations": x,
        "next_observations": np.roll(x, -1, axis=0),
        "rewards": x[:, 0].astype(np.float64),
        "terminated": rng.random(500) < 0.05,
    }
    stub = Stub(rows)
    found = learn(stub, GRID[:2], path=tmp_path / "td", td=True, gamma=0.9)
    assert found.receipt["run"]["td"] == {"gamma": 0.9}
    assert check_receipt(found, stub).digest == found.digest
    with pytest.raises(ArgumentError, match="gamma"):
        learn(stub, GRID[:2], path=tmp_path / "bad", td=True, gamma=1.5)


def test_the_noise_floor_is_known_where_the_stream_says_its_noise():
    assert noise_floor(AbruptChangeStream(3, noise_std=0.5).spec(0, 10)) == 0.25
    assert noise_floor(ScaledStreamWrapper(CyclicStream(2, noise_std=2.0), [1, 2]).spec(0, 10)) == 4.0
    assert noise_floor(SuttonExperiment1Stream().spec(0, 10)) == 0.0
    assert noise_floor(EnvironmentStream("CartPole-v1").spec(0, 10)) is None


def test_a_damaged_dataset_leaves_no_run(tmp_path):
    path = tmp_path / "d.zarr"
    create_dataset(AbruptChangeStream(5), steps=2000, seed=1, path=path)
    chunk = path / "observations" / "c" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    data[777] ^= 4
    chunk.chmod(0o644)
    chunk.write_bytes(data)
    with open_dataset(path) as damaged, pytest.raises(DamagedDatasetError):
        learn(damaged, GRID, path=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_where_jax_runs_without_the_pin_a_child_learns_the_same(dataset, run, tmp_path):
    code = (
        "import sys, jax; jax.devices(); "
        "from alberta_data.dataset import open_dataset; from alberta_data.learners import *; "
        "from alberta_data.runs import learn; "
        "found = learn(open_dataset(sys.argv[1]), LinearLearner(IDBD(0.02, 0.01)), path=sys.argv[2]); "
        "print(found.members[0]['digest'], len(found.states[0].weights))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", code, str(dataset.path), str(tmp_path / "run")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.split() == [run.members[2]["digest"], "5"]
    assert read_receipt(tmp_path / "run")["made_with"]["xla_flags"] == run.receipt["made_with"]["xla_flags"]


def test_a_member_lost_before_stays_lost_in_what_goes_on_from_it(dataset, tmp_path):
    learners = [GRID[0], LinearLearner(LMS(20.0), OnlineNormalizer())]
    first = learn(dataset, learners, path=tmp_path / "first", steps=10_000)
    second = learn(dataset, learners, path=tmp_path / "second", start=10_000, after=first)
    assert [member["stopped_at"] for member in second.members] == [None, 10_000]
    assert same(second.states[0], learn(dataset, GRID[0], path=tmp_path / "whole").states[0])


def test_a_killed_run_resumes_to_the_same_bytes(dataset, tmp_path):
    code = (
        "import os, signal, sys; from alberta_data.xla import pin; pin()\n"
        "from alberta_data.dataset import open_dataset; from alberta_data.learners import *\n"
        "from alberta_data.runs import learn, passing, request\n"
        "passing.SAVE_WEIGHTS, request.BLOCK_BYTES = 1, 16 * 2048\n"
        "def killed(done, total):\n"
        "    if done > 15000: os.kill(os.getpid(), signal.SIGKILL)\n"
        "learn(open_dataset(sys.argv[1]), LinearLearner(IDBD(0.02, 0.01)), path=sys.argv[2], progress=killed)\n"
    )
    command = [sys.executable, "-c", code, str(dataset.path), str(tmp_path / "run")]
    assert subprocess.run(command, timeout=120).returncode == -9
    assert os.listdir(tmp_path) == ["run.partial"]
    seen = []
    found = learn(dataset, GRID[2], path=tmp_path / "run", resume=True, progress=lambda done, total: seen.append(done))
    assert seen[0] > 10_000
    assert files(found.path) == files(learn(dataset, GRID[2], path=tmp_path / "whole").path)


def test_learning_straight_from_the_stream_gives_the_bits_of_its_dataset(dataset):
    learner = LinearLearner(IDBD(0.02, 0.01), OnlineNormalizer())
    with jax.numpy_rank_promotion("allow"):
        assert same(
            run_learning_loop(learner, AbruptChangeStream(5), STEPS, 3), learn_from_trajectory(learner, dataset)
        )


@pytest.mark.parametrize("setting", [{"JAX_ENABLE_X64": "1"}, {"JAX_DEFAULT_MATMUL_PRECISION": "bfloat16"}], ids=str)
def test_settings_of_jax_change_no_bit(dataset, run, setting):
    code = (
        "import sys; from alberta_data.xla import pin; pin(); from alberta_data.dataset import open_dataset\n"
        "from alberta_data.learners import *; from alberta_data.runs import check_receipt\n"
        "print(check_receipt(sys.argv[1], open_dataset(sys.argv[2])).digest)\n"
    )
    command = [sys.executable, "-c", code, str(run.path), str(dataset.path)]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **setting})
    assert found.stdout.strip() == run.digest, found.stderr[-500:]
