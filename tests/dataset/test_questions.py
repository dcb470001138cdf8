"""What a dataset answers: slices, hidden state, made again, compared, extended, listed."""

import shutil

import numpy as np
import pytest

from alberta_data import generation
from alberta_data.dataset import create_dataset, diff, list_datasets, open_dataset, reproduce
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.errors import ArgumentError, DamagedDatasetError, UnavailableError
from alberta_data.store import ArrayDeclaration, Writer
from alberta_data.streams.registry import STREAMS
from alberta_data.streams.synthetic import AbruptChangeStream, RandomWalkStream
from tests.streams.making import with_features

LONG = 300_001


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return create_dataset(AbruptChangeStream(3), steps=LONG, seed=7, path=tmp_path_factory.mktemp("d") / "a.zarr")


def forged(dataset, path, change):
    """Write the same rows with `change` applied to each block: a dataset that claims a spec it was not made from."""
    declarations = declared(dataset)
    first = dataset.store.checkpoint(0)[1]
    with Writer.begin(
        path, dict(dataset.spec), dict(dataset.made_with), declarations, checkpoint_state=first
    ) as writer:
        for block, state in generation.blocks(dataset.stream, dataset.spec["seed"], dataset.steps):
            arrays = {name: np.array(rows) for name, rows in block.arrays.items()}
            after = {name: array.copy() for name, array in generation.state_arrays(state).items()}
            change(block.start, arrays, after)
            writer.append(type(block)(block.start, arrays), after)
        writer.finish()
    return open_dataset(path)


def declared(dataset):
    from alberta_data.store import ArrayDeclaration

    return [ArrayDeclaration(n, a.dtype.name, a.shape[1:]) for n, a in dataset.arrays.items()]


def test_slices_are_those_of_the_whole(dataset):
    whole = dataset.observations[:]
    assert whole.shape == (LONG, 3)
    assert np.array_equal(dataset.observations[131_000:131_100], whole[131_000:131_100])
    assert np.array_equal(dataset.observations[-5:], whole[-5:])
    assert np.array_equal(dataset.observations[::-100_000], whole[::-100_000])
    assert np.array_equal(dataset.observations[10:20:3, 1], whole[10:20:3, 1])
    assert np.array_equal(dataset["observations"][-1], whole[-1])
    assert np.array_equal(np.asarray(dataset.targets), dataset.targets[:])
    with pytest.raises(IndexError, match="row must be from 0"):
        dataset.observations[LONG]
    with pytest.raises(ArgumentError, match="array must be one of observations, targets"):
        dataset["rewards"]


def test_iterating_gives_all_blocks_in_order(dataset):
    rows = np.concatenate([np.array(block.targets) for block in dataset])
    assert np.array_equal(rows, dataset.targets[:])


def test_blocks_that_are_kept_hold_what_they_held(dataset):
    blocks = list(dataset)
    assert len(blocks) > 4
    assert all(np.array_equal(block.targets, dataset.targets[block.start : block.stop]) for block in blocks)


def test_arrays_that_the_spec_does_not_make_are_not_identical(dataset, tmp_path):
    from alberta_data.store import ArrayDeclaration

    short = create_dataset(AbruptChangeStream(3), steps=100, seed=7, path=tmp_path / "short.zarr")
    first = short.store.checkpoint(0)[1]
    rows = {"observations": short.observations[:], "targets": short.targets[:]}
    others = {"more": {**rows, "bonus": rows["targets"]}, "fewer": {"observations": rows["observations"]},
              "wider": {**rows, "observations": np.zeros((100, 5), np.float32)},
              "doubles": {name: array.astype(np.float64) for name, array in rows.items()}}  # fmt: skip
    for name, arrays in others.items():
        declarations = [ArrayDeclaration(n, a.dtype.name, a.shape[1:]) for n, a in arrays.items()]
        place = tmp_path / f"{name}.zarr"
        with Writer.begin(place, dict(short.spec), {}, declarations, checkpoint_state=first) as writer:
            writer.append(type(next(iter(dataset)))(0, arrays), first)
            writer.finish()
        found = open_dataset(place).reproduce()
        assert not found.identical
        assert found.note.startswith("the spec makes other arrays")


@pytest.mark.parametrize("name", STREAMS)
def test_hidden_state_of_any_range_is_what_the_targets_were_made_with(name, tmp_path):
    stream = with_features(name, 4)
    made = create_dataset(stream, steps=140_000, path=tmp_path / "a.zarr")
    parts = list(generation.blocks(stream, 0, 140_000, hidden=True))
    for start, stop in ((0, 3), (131_070, 131_075), (139_999, 140_000)):
        found = made.hidden(start, stop)
        for key, rows in found.items():
            expected = np.concatenate([block.arrays[key] for block, _ in parts])[start:stop]
            assert np.array_equal(rows, expected)


def test_change_points_are_where_the_hidden_weights_change(dataset):
    points = dataset.change_points()
    weights = dataset.hidden(990, 2010)["true_weights"]
    changed = 991 + np.flatnonzero((weights[1:] != weights[:-1]).any(axis=1))
    assert changed.tolist() == [t for t in points.tolist() if 991 <= t < 2010] == [1000, 2000]


def test_streams_that_drift_at_every_step_have_no_change_points(tmp_path):
    assert create_dataset(RandomWalkStream(2), steps=10, path=tmp_path / "a.zarr").change_points() is None


def test_a_dataset_is_made_again_bit_for_bit(dataset):
    again = dataset.reproduce()
    assert again.identical
    assert (again.first_step, again.differing, again.max_ulp, again.note) == (None, 0, 0, "")
    assert again.made_with == {}


def test_numbers_that_are_not_those_of_the_spec_are_found_with_their_step_count_and_distance(dataset, tmp_path):
    def nudge(start, arrays, state):
        if start <= 200_000 < start + len(arrays["targets"]):
            at = 200_000 - start
            arrays["targets"][at] = np.nextafter(arrays["targets"][at], np.float32(9), dtype=np.float32)
            arrays["observations"][at + 1, 2] = 0

    again = forged(dataset, tmp_path / "a.zarr", nudge).reproduce()
    assert not again.identical
    assert (again.first_step, again.array, again.differing) == (200_000, "targets", 2)
    assert again.max_ulp > 10**6
    assert again.note == ""


def test_checkpoints_that_do_not_follow_from_each_other_prove_nothing(dataset, tmp_path):
    def other_state(start, arrays, state):
        if start + len(arrays["targets"]) == 131_072:
            state["key"] = state["key"] + np.uint32(1)

    again = forged(dataset, tmp_path / "a.zarr", other_state).reproduce()
    assert again.identical
    assert "compared from the seed on" in again.note


def test_a_recipe_makes_the_same_id_or_says_that_it_is_another(dataset, tmp_path):
    recipe = {"spec": dict(dataset.spec), "id": dataset.id, "made_with": dict(dataset.made_with)}
    made = reproduce(recipe, tmp_path / "b.zarr")
    assert made.identical
    assert open_dataset(made.path).id == dataset.id
    other = reproduce({**recipe, "id": "0" * 64}, tmp_path / "b.zarr")
    assert not other.identical
    assert dataset.id in other.note


def test_diff_tells_spec_settings_and_the_first_step_apart(dataset, tmp_path):
    assert diff(dataset, dataset).identical
    other = create_dataset(AbruptChangeStream(3, noise_std=0.2), steps=LONG, seed=7, path=tmp_path / "b.zarr")
    found = diff(dataset, other)
    assert found.spec == {"parameters.noise_std": (0.1, 0.2)}
    assert (found.first_step, found.array) == (0, "targets")
    shorter = create_dataset(AbruptChangeStream(3), steps=1000, seed=7, path=tmp_path / "c.zarr")
    found = diff(dataset, shorter)
    assert not found.identical
    assert found.first_step is None
    wider = create_dataset(AbruptChangeStream(4), steps=1000, seed=7, path=tmp_path / "d.zarr")
    assert "float32 (1000, 4) in the second" in diff(dataset, wider).arrays["observations"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    ("before", "after"), [(1000, 1500), (131_072, 131_073), (262_144, 280_000), (140_000, 300_000)]
)
def test_an_extended_dataset_has_the_id_of_one_made_at_once(name, before, after, tmp_path):
    stream = with_features(name, 2)
    short = create_dataset(stream, steps=before, seed=1, path=tmp_path / "short.zarr")
    longer = short.extend(after, tmp_path / "longer.zarr")
    assert longer.id == create_dataset(stream, steps=after, seed=1, path=tmp_path / "whole.zarr").id
    assert open_dataset(tmp_path / "short.zarr").id == short.id


def test_extending_verifies_what_it_copies_and_refuses_other_settings(dataset, tmp_path):
    with pytest.raises(ArgumentError, match=f"more than the {LONG}"):
        dataset.extend(LONG, tmp_path / "b.zarr")
    copy = tmp_path / "copy.zarr"
    shutil.copytree(dataset.path, copy)
    chunk = sorted((copy / "observations" / "c").rglob("*"))[1]
    chunk.chmod(0o644)
    data = bytearray(chunk.read_bytes())
    data[1000] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(DamagedDatasetError, match="observations"):
        open_dataset(copy).extend(LONG + 10, tmp_path / "b.zarr")
    assert not (tmp_path / "b.zarr").exists()
    elsewhere = forged_settings(dataset, tmp_path / "gpu.zarr")
    with pytest.raises(UnavailableError, match="device was 'gpu', is 'cpu'"):
        elsewhere.extend(LONG + 10, tmp_path / "c.zarr")


def forged_settings(dataset, path):
    first = dataset.store.checkpoint(0)[1]
    made_with = {**dataset.made_with, "device": "gpu"}
    with Writer.begin(path, dict(dataset.spec), made_with, declared(dataset), checkpoint_state=first) as writer:
        for block, state in generation.blocks(dataset.stream, dataset.spec["seed"], dataset.steps):
            writer.append(block, generation.state_arrays(state))
        writer.finish()
    return open_dataset(path)


def test_the_datasets_of_a_folder_are_listed_with_the_command_that_goes_on(tmp_path):
    made = create_dataset(AbruptChangeStream(3), steps=500, data_dir=tmp_path)
    stream, steps = RandomWalkStream(2, drift_rate=0.5), 400_000
    recording_ = __import__("alberta_data.dataset.recording", fromlist=["recording"]).recording(stream, 3, steps)
    writer = Writer.begin(tmp_path / "half.zarr", recording_.spec, recording_.made_with, recording_.declarations,
                          checkpoint_state=dict(recording_.initial_state), chunk_steps=2**14)  # fmt: skip
    part = next(recording_.parts(0, recording_.initial_state))
    writer.append(part.block, dict(part.state))
    writer.close()
    entries = {entry.name: entry for entry in list_datasets(tmp_path)}
    assert entries["abrupt-d3-500-s0.zarr"].id == made.id
    assert entries["half.zarr"].id is None
    assert entries["half.zarr"].done == pytest.approx(part.block.stop / steps)
    assert "generate random-walk --feature-dim 2 --drift-rate 0.5" in entries["half.zarr"].resume
    assert open_dataset(made.id[:8], data_dir=tmp_path).id == made.id
    assert open_dataset("abrupt-d3-500-s0", data_dir=tmp_path).id == made.id
    with pytest.raises(ArgumentError, match="no dataset in"):
        open_dataset("0" * 8, data_dir=tmp_path)


def test_an_environment_is_listed_with_the_features_that_its_name_counts(tmp_path):
    for include in (True, False):
        stream = EnvironmentStream("CartPole-v1", include_action_in_features=include)
        made = create_dataset(stream, steps=50, data_dir=tmp_path)
        (entry,) = [entry for entry in list_datasets(tmp_path) if entry.id == made.id]
        assert entry.features == 4 + include
        assert f"-d{entry.features}-" in entry.name


def test_episodes_that_only_the_stored_dataset_has_are_found(tmp_path):
    made = create_dataset(EnvironmentStream("CartPole-v1"), steps=60, path=tmp_path / "a.zarr")
    assert made.reproduce().identical
    declarations = [
        ArrayDeclaration(name, a.dtype.name, a.shape[1:], columns=a.columns, by_step=name != "final_observations")
        for name, a in made.arrays.items()
    ]
    more = np.concatenate([made["final_observations"][:], made["final_observations"][:1]])
    first = made.store.checkpoint(0)[1]
    with Writer.begin(
        tmp_path / "b.zarr", dict(made.spec), dict(made.made_with), declarations, checkpoint_state=first
    ) as writer:
        (block,) = made.blocks()
        writer.append(block, first, {"final_observations": more})
        writer.finish()
    found = open_dataset(tmp_path / "b.zarr").reproduce()
    assert (found.identical, found.array, found.differing) == (False, "final_observations", 1)
