"""Exported rows are the dataset's, read back by the real packages; nothing is left where something is wrong."""

import csv
import fcntl
import json
import sys

import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.dataset import create_dataset
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.errors import ArgumentError, DamagedDatasetError, DestinationError, StorageError, UnavailableError
from alberta_data.share import export
from alberta_data.store import ArrayDeclaration, Writer, open_store
from tests.share.conftest import SHAPES, flip
from tests.store.faults import failing_at, stopped_at

TABLES = ("parquet", "csv", "arff", "npz")


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Every kind of number, columns with awkward names, one that stands twice."""
    path, rng = tmp_path_factory.mktemp("odd") / "d.zarr", np.random.default_rng(3)
    spec = {
        "kind": "frozen",
        "stream": "it's, odd",
        "version": 1,
        "parameters": {},
        "prng": None,
        "seed": None,
        "steps": 500,
    }
    doubles = rng.standard_normal(500) * 10.0 ** rng.integers(-300, 300, 500)
    doubles[3] = np.nan
    arrays = {
        "observations": rng.standard_normal((500, 3)).astype(np.float32),
        "targets": rng.standard_normal((500, 1)).astype(np.float32),
        "doubles": doubles,
        "halves": rng.standard_normal(500).astype(np.float16),
        "flags": rng.random(500) < 0.5,
        "whole": rng.integers(-(2**63), 2**63 - 1, 500),
        "large": rng.integers(0, 2**64 - 1, 500, dtype=np.uint64),
    }
    columns = {"observations": ("a,b", 'c "d"', "x"), "targets": ("x",)}
    declared = [
        ArrayDeclaration(name, rows.dtype.name, rows.shape[1:], columns=columns.get(name))
        for name, rows in arrays.items()
    ]
    with Writer.begin(path, spec, {}, declared) as writer:
        writer.append(Block(0, arrays))
        writer.finish()
    return path, arrays


def columns(arrays):
    """What a table of the odd dataset holds, name → values."""
    found = {f"observations.{n}": arrays["observations"][:, i] for i, n in enumerate("abc")}
    return {
        "doubles": arrays["doubles"], "flag": arrays["flags"], "halve": arrays["halves"], "large": arrays["large"],
        "a,b": found["observations.a"], 'c "d"': found["observations.b"], "observations.x": found["observations.c"],
        "whole": arrays["whole"], "targets.x": arrays["targets"][:, 0],
    }  # fmt: skip


def test_parquet_keeps_every_dtype_and_bit_and_names_the_dataset(odd, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(export(odd[0], tmp_path / "d.parquet"))
    expected = {("double" if name == "doubles" else name): rows for name, rows in columns(odd[1]).items()}
    assert set(table.column_names) == set(expected)
    assert table.column_names[-1] == "targets.x"
    for name, rows in expected.items():
        found = table[name].to_numpy()
        assert found.dtype == rows.dtype
        assert np.array_equal(found, rows, equal_nan=rows.dtype.kind == "f")
    with open_store(odd[0]) as store:
        told = json.loads(table.schema.metadata[b"alberta_data"])
        assert told == {"id": store.root.id, "spec": store.root.spec}


def test_parquet_has_a_row_group_a_block(made, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    file = parquet.ParquetFile(export(made("leafy"), tmp_path / "d.parquet"))
    assert file.metadata.num_row_groups == 5
    assert file.metadata.num_rows == 300_000


def test_csv_reads_back_to_the_same_bits(odd, tmp_path):
    with export(odd[0], tmp_path / "d.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    expected = {("double" if name == "doubles" else name): values for name, values in columns(odd[1]).items()}
    assert set(header) == set(expected)
    for name, texts in zip(header, zip(*rows, strict=True), strict=True):
        values = expected[name]
        if values.dtype.kind == "b":
            assert [text == "True" for text in texts] == values.tolist()
        elif values.dtype.kind in "iu":
            assert [int(text) for text in texts] == values.tolist()
        else:
            found = np.array([float(text) for text in texts]).astype(values.dtype)
            assert np.array_equal(found, values, equal_nan=True)
            assert (
                values.dtype != np.float32
                or max(len(t.lstrip("-0.").replace(".", "").split("e")[0]) for t in texts) <= 9
            )


def test_arff_is_read_by_scipy_and_river_and_the_target_is_last(odd, made, tmp_path):
    arff = pytest.importorskip("scipy.io.arff")
    path = export(made("small"), tmp_path / "d.arff", names=["observations", "targets"])
    rows, meta = arff.loadarff(path)
    with open_store(made("small")) as store:
        assert meta.names() == ["observation_0", "observation_1", "observation_2", "target"]
        assert np.array_equal(rows["target"].astype(np.float32), store.read("targets")[:, 0])
        assert np.array_equal(rows["observation_2"].astype(np.float32), store.read("observations")[:, 2])
    assert rows.dtype["target"] == np.float64
    text = export(odd[0], tmp_path / "odd.arff").read_text()
    assert "@relation 'it\\'s, odd'" in text
    assert "@attribute flag {False,True}" in text
    assert ",?," in text or text.count("?") == 1
    river = pytest.importorskip("river.stream", reason="river is not installed")
    with path.open() as file:
        first, target = next(iter(river.iter_arff(file, target="target")))
    assert target == pytest.approx(float(rows["target"][0]))
    assert len(first) == 3


def test_npz_holds_every_array_and_the_same_bytes_each_time(odd, made, tmp_path):
    for path, names in ((odd[0], None), (made("small"), None), (made("packed"), ["targets"])):
        one = export(path, tmp_path / f"{path.parent.name}{path.name}.npz", names=names)
        again = export(path, tmp_path / f"{path.parent.name}{path.name}.2.npz", names=names)
        assert one.read_bytes() == again.read_bytes()
        with np.load(one) as found, open_store(path) as store:
            assert set(found) == set(names or store.root.arrays)
            for name in found:
                assert found[name].dtype.name == store.root.arrays[name].dtype
                assert np.array_equal(found[name], store.read(name), equal_nan=found[name].dtype.kind == "f")


def test_a_part_of_the_steps_is_exported(made, tmp_path):
    told = []
    path = export(made("small"), tmp_path / "d.npz", start=150, stop=601, progress=lambda *a: told.append(a))
    with np.load(path) as found, open_store(made("small")) as store:
        assert np.array_equal(found["observations"], store.read("observations", 150, 601))
        assert len(found["rewards"]) == 451
    assert told[-1] == (451, 451)


@pytest.mark.parametrize("form", TABLES)
def test_a_damaged_dataset_leaves_nothing(form, copied, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = copied("leafy")
    flip(path / "flags/c/5")
    with pytest.raises(DamagedDatasetError):
        export(path, tmp_path / f"d.{form}")
    assert [p.name for p in tmp_path.iterdir()] == ["copies"]


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_an_export_stopped_at_any_operation_is_not_there_or_whole(form, made, tmp_path, unsynced, record_property):
    whole, number = export(made("tiny"), tmp_path / f"whole.{form}").read_bytes(), 0
    while True:
        path = tmp_path / str(number) / f"d.{form}"
        stopped = stopped_at(number, lambda path=path: export(made("tiny"), path))
        assert not path.exists() or path.read_bytes() == whole
        if not stopped:
            break
        number += 1
    record_property("T1", number)
    assert number >= 5


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_what_a_killed_export_left_is_cleared_and_what_is_in_use_or_something_else_stays(form, made, tmp_path):
    whole = export(made("tiny"), tmp_path / f"whole.{form}").read_bytes()
    path = tmp_path / f"d.{form}"
    left = tmp_path / f"d.{form}.partial"
    left.write_bytes(whole[:100])
    with left.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DestinationError, match="in use"):
            export(made("tiny"), path)
    assert export(made("tiny"), path).read_bytes() == whole
    assert not left.exists()
    path.unlink()
    left.mkdir()
    (left / "mine").touch()
    with pytest.raises(DestinationError, match="something else"):
        export(made("tiny"), path)
    assert (left / "mine").exists()


def test_an_export_to_a_full_disk_leaves_nothing(made, tmp_path, unsynced, record_property):
    record_property("T4", 1)
    faults, _ = failing_at(1, "ENOSPC", True)
    with faults, pytest.raises(StorageError, match="bytes free"):
        export(made("tiny"), tmp_path / "d.csv")
    assert not (tmp_path / "d.csv").exists()


def test_what_lies_at_the_path_is_left_alone_and_wrong_arguments_are_named(made, tmp_path):
    (tmp_path / "mine.csv").write_text("x")
    with pytest.raises(DestinationError):
        export(made("tiny"), tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_text() == "x"
    for arguments in ({"format": "xlsx"}, {"names": ["nothing"]}, {"names": []}, {"start": 5, "stop": 5}, {"stop": 21}):
        with pytest.raises(ArgumentError):
            export(made("tiny"), tmp_path / "d.csv", **arguments)
    with pytest.raises(ArgumentError, match="format must be one of"):
        export(made("tiny"), tmp_path / "d")
    with pytest.raises(ArgumentError, match="table"):
        export(made("small"), tmp_path / "d.csv", names=["final_observations"])
    with pytest.raises(ArgumentError, match="of an environment"):
        export(made("tiny"), tmp_path / "d", "minari")


def test_infinity_has_no_text_in_arff(tmp_path):
    spec = {"kind": "frozen", "stream": "x", "version": 1, "parameters": {}, "prng": None, "seed": None, "steps": 2}
    with Writer.begin(tmp_path / "d.zarr", spec, {}, [ArrayDeclaration("x", "float32", ())]) as writer:
        writer.append(Block(0, {"x": np.array([1, np.inf], np.float32)}))
        writer.finish()
    with pytest.raises(ArgumentError, match="infinite"):
        export(tmp_path / "d.zarr", tmp_path / "d.arff")
    assert not (tmp_path / "d.arff").exists()


def test_missing_packages_are_named_with_their_extra(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnavailableError, match=r"alberta-data\[parquet\]"):
        export(made("tiny"), tmp_path / "d.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cart-v0", "plain"])
def test_minari_loads_the_episodes_of_an_environment(name, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari", reason="minari is not installed")
    pytest.importorskip("PIL", reason="pillow, which Minari's Arrow form needs, is not installed")
    dataset = create_dataset(EnvironmentStream("CartPole-v1"), steps=200, path=tmp_path / "d.zarr")
    path = export(dataset, tmp_path / name, "minari")
    found = minari.MinariDataset(path / "data")
    finals = dataset["final_observations"][:]
    assert found.total_steps == 200
    assert found.total_episodes == len(finals)
    step = 0
    for number, episode in enumerate(found.iterate_episodes()):
        stop = step + len(episode.rewards)
        assert np.array_equal(episode.observations[:-1], dataset.observations[step:stop])
        assert np.array_equal(episode.observations[-1], finals[number])
        assert np.array_equal(episode.actions, dataset["actions"][step:stop, 0])
        assert np.array_equal(episode.rewards, dataset["rewards"][step:stop])
        assert np.array_equal(episode.terminations, dataset["terminated"][step:stop])
        assert dataset["episode_start"][step]
        step = stop
    assert step == 200
    assert dataset.id in found.storage.metadata["description"]
    if name == "cart-v0":
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        assert minari.load_dataset("cart-v0").total_steps == 200


@pytest.mark.filterwarnings("ignore")
def test_what_a_killed_export_to_minari_left_is_cleared(tmp_path):
    pytest.importorskip("minari", reason="minari is not installed")
    dataset = create_dataset(EnvironmentStream("CartPole-v1"), steps=50, path=tmp_path / "d.zarr")
    left = tmp_path / "c.partial"
    (left / "data" / "0").mkdir(parents=True)
    export(dataset, tmp_path / "c", "minari")
    assert not left.exists()
    other = tmp_path / "e.partial"
    other.mkdir()
    (other / "mine").touch()
    with pytest.raises(DestinationError, match="something else"):
        export(dataset, tmp_path / "e", "minari")
    assert (other / "mine").exists()


def test_minari_keeps_continuous_actions(tmp_path):
    minari = pytest.importorskip("minari", reason="minari is not installed")
    pytest.importorskip("PIL", reason="pillow, which Minari's Arrow form needs, is not installed")
    dataset = create_dataset(EnvironmentStream("Pendulum-v1"), steps=250, path=tmp_path / "d.zarr")
    found = minari.MinariDataset(export(dataset, tmp_path / "p", "minari") / "data")
    assert np.array_equal(found[0].actions, dataset["actions"][:200])
    assert found[1].observations.shape == (51, 3)


def test_the_shapes_of_the_tests_are_all_exported(made, tmp_path):
    for shape in SHAPES:
        assert export(made(shape), tmp_path / f"{shape}.csv").stat().st_size > 0
