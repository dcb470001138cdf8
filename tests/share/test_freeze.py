"""A recorded file becomes a dataset: dtypes and bits kept, damage found, another file another id."""

import hashlib
import io
import zipfile

import numpy as np
import pytest

from alberta_data.errors import ArgumentError, DestinationError
from alberta_data.share import export, freeze, pack
from alberta_data.store import open_store
from tests.share.conftest import flip, is_whole
from tests.store.faults import stopped_at

RNG = np.random.default_rng(5)
ROWS = 70_000
COLUMNS = {
    "a": RNG.standard_normal(ROWS).astype(np.float32),
    "b": RNG.standard_normal(ROWS).astype(np.float32),
    "y": RNG.standard_normal(ROWS),
    "n": RNG.integers(-(2**40), 2**40, ROWS),
    "flag": RNG.random(ROWS) < 0.5,
}


def parquet_of(path, columns):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path, row_group_size=30_000)
    return path


def npz_of(path, columns):
    np.savez(path, **columns)
    return path


def csv_of(path, columns):
    lines = [",".join(columns)]
    lines += [",".join(map(repr, row)) for row in zip(*(rows.tolist() for rows in columns.values()), strict=True)]
    path.write_text("\n".join(lines))
    return path


MAKERS = {"parquet": parquet_of, "npz": npz_of, "csv": csv_of}


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_dtypes_and_bits_are_kept(kind, tmp_path):
    file = MAKERS[kind](tmp_path / f"f.{kind}", COLUMNS)
    path = freeze(
        file,
        tmp_path / "d.zarr",
        name="plant",
        observations=["a", "b"],
        targets=["y"],
        others={"n": "n", "flag": "flag"},
    )
    assert is_whole(path)
    with open_store(path) as store:
        spec = store.root.spec
        assert (spec["kind"], spec["stream"], spec["version"], spec["prng"], spec["seed"]) == (
            "frozen",
            "plant",
            1,
            None,
            None,
        )
        assert spec["steps"] == ROWS
        assert spec["parameters"] == {
            "source_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "columns": {"observations": ["a", "b"], "targets": ["y"], "n": "n", "flag": "flag"},
        }
        assert store.root.arrays["observations"].columns == ("a", "b")
        assert np.array_equal(store.read("observations"), np.stack([COLUMNS["a"], COLUMNS["b"]], axis=1))
        assert np.array_equal(store.read("targets"), COLUMNS["y"][:, None])
        for name in ("n", "flag"):
            assert store.read(name).dtype == COLUMNS[name].dtype
            assert np.array_equal(store.read(name), COLUMNS[name])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_csv_is_read_as_the_dtype_declared(dtype, tmp_path):
    rows = RNG.integers(0, 2, (100, 3)) if dtype == "bool" else RNG.integers(-1000, 1000, (100, 3))
    values = rows.astype(dtype) if dtype != "float64" else rows / 7
    file = csv_of(tmp_path / "f.csv", {"x": values[:, 0], "y": values[:, 1], "z": values[:, 2]})
    with open_store(freeze(file, tmp_path / "d.zarr", observations=["z", "x"], targets="y", dtype=dtype)) as store:
        assert store.read("observations").dtype == np.dtype(dtype)
        assert np.array_equal(store.read("observations"), values[:, [2, 0]])
        assert np.array_equal(store.read("targets"), values[:, [1]])


@pytest.mark.parametrize("form", ["parquet", "npz", "csv"])
def test_what_was_exported_is_frozen_with_the_same_rows(form, made, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    file = export(made("small"), tmp_path / f"e.{form}", names=["observations", "targets"])
    observations = ["observations"] if form == "npz" else [f"observation_{n}" for n in range(3)]
    path = freeze(
        file, tmp_path / "d.zarr", observations=observations, targets="targets" if form == "npz" else "target",
        dtype="float32" if form == "csv" else None,
    )  # fmt: skip
    with open_store(path) as ours, open_store(made("small")) as theirs:
        for name in ("observations", "targets"):
            assert ours.root.arrays[name].leaves == theirs.root.arrays[name].leaves


def test_arrays_of_any_shape_and_order_are_taken_from_an_npz(tmp_path):
    images = RNG.integers(0, 255, (300, 4, 5), dtype=np.uint8)
    fortran = np.asfortranarray(RNG.standard_normal((300, 3)))
    file = npz_of(
        tmp_path / "f.npz", {"images": images, "x": fortran, "big": fortran.astype(">f8"), "y": fortran[:, 0]}
    )
    path = freeze(
        file, tmp_path / "d.zarr", observations="images", targets=["x", "y"], others={"big": ["big"], "y": ["y"]}
    )
    with open_store(path) as store:
        assert np.array_equal(store.read("observations"), images)
        assert np.array_equal(store.read("targets"), np.concatenate([fortran, fortran[:, :1]], axis=1))
        assert store.root.arrays["targets"].columns == ("x.0", "x.1", "x.2", "y")
        assert np.array_equal(store.read("big"), fortran)
        assert store.read("y").shape == (300, 1)


def test_lists_of_a_fixed_size_are_taken_from_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rows = RNG.standard_normal((200, 4)).astype(np.float32)
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), 4)
    file = parquet_of(tmp_path / "f.parquet", {"x": lists, "y": pyarrow.array(rows[:, 0])})
    with open_store(freeze(file, tmp_path / "d.zarr", observations="x", targets="y")) as store:
        assert np.array_equal(store.read("observations"), rows)


def test_the_same_file_gives_the_same_id_and_another_byte_another(tmp_path):
    def frozen(columns, name):
        file = npz_of(tmp_path / f"{name}.npz", columns)
        with open_store(freeze(file, tmp_path / f"{name}.zarr", name="x", observations=["a"], targets=["y"])) as store:
            return store.root.id

    other = {**COLUMNS, "y": COLUMNS["y"].copy()}
    other["y"][-1] += 1e-9
    assert frozen(COLUMNS, "one") == frozen(COLUMNS, "two")
    assert frozen(other, "three") != frozen(COLUMNS, "four")


def test_a_frozen_dataset_has_the_same_guarantees(tmp_path):
    file = npz_of(tmp_path / "f.npz", COLUMNS)
    path = freeze(file, tmp_path / "d.zarr", observations=["a", "b"], codec="fast")
    assert freeze(file, path, observations=["a", "b"]) == path
    with pytest.raises(DestinationError, match="columns"):
        freeze(file, path, observations=["b", "a"])
    assert is_whole(pack(path))
    flip(path / "observations/c/0/0")
    with open_store(path) as store:
        assert not store.verify().ok


def test_freezing_stopped_at_any_operation_can_be_gone_on_with(tmp_path, unsynced, record_property):
    file, number, ids = csv_of(tmp_path / "f.csv", {"x": np.arange(50.0), "y": np.arange(50.0)}), 0, set()
    while True:
        path = tmp_path / str(number) / "d.zarr"
        work = lambda path=path: freeze(file, path, observations="x", targets="y", chunk_steps=20)  # noqa: E731
        stopped = stopped_at(number, work)
        assert not path.exists() or is_whole(path)
        with open_store(work()) as store:
            ids.add(store.root.id)
        if not stopped:
            break
        number += 5
    record_property("T1", number // 5)
    assert number > 30
    assert len(ids) == 1


def test_the_usual_name_says_what_is_in_it(tmp_path):
    file = npz_of(tmp_path / "my plant.npz", {"a": np.zeros(3000)})
    assert freeze(file, data_dir=tmp_path / "x", observations="a") == tmp_path / "x/my-plant-d1-3e3.zarr"


CSV = {
    "empty": b"",
    "no rows": b"x,y\n",
    "a missing column": b"x\n1\n",
    "a column twice": b"x,y,x\n1,2,3\n",
    "a missing value": b"x,y\n1,2\n,3\n",
    "text": b"x,y\n1,2\n1,abc\n",
    "a short line": b"x,y\n1,2\n3\n",
    "a long line": b"x,y\n1,2\n3,4,5\n",
    "no utf-8": b"x,y\n\xff\xfe,2\n",
    "digits of python": b"x,y\n1_000,2\n",
    "beyond double": b"x,y\n1e400,2\n",
}


@pytest.mark.parametrize("kind", CSV)
def test_a_csv_that_cannot_be_frozen_is_told_with_its_place(kind, tmp_path):
    (tmp_path / "f.csv").write_bytes(CSV[kind])
    with pytest.raises(ArgumentError) as raised:
        freeze(tmp_path / "f.csv", tmp_path / "d.zarr", observations="x", targets="y")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "d.zarr").exists()


def test_numbers_beyond_the_dtype_are_refused_and_infinity_is_kept(tmp_path):
    (tmp_path / "f.csv").write_text("x,y\n1e39,1\n")
    with pytest.raises(ArgumentError, match="1e39"):
        freeze(tmp_path / "f.csv", tmp_path / "d.zarr", observations="x", dtype="float32")
    (tmp_path / "g.csv").write_text("x,y\n300,1\n")
    with pytest.raises(ArgumentError, match="300"):
        freeze(tmp_path / "g.csv", tmp_path / "e.zarr", observations="x", dtype="int8")
    (tmp_path / "h.csv").write_text("x,y\ninf,1\nnan,2\r\n\r\n-Infinity,3\n")
    with open_store(freeze(tmp_path / "h.csv", tmp_path / "f.zarr", observations="x")) as store:
        assert np.array_equal(store.read("observations")[:, 0], [np.inf, np.nan, -np.inf], equal_nan=True)


def object_npz():
    data = io.BytesIO()
    np.savez(data, x=np.array([{"a": 1}, None], object))
    return data.getvalue()


def lying_npz():
    """An array that says it is longer than it is."""
    data = io.BytesIO()
    np.save(data, np.zeros(10))
    content = data.getvalue().replace(b"(10,)", b"(99,)")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.npy", content)
    return out.getvalue()


NPZ = {
    "no zip": b"hello",
    "empty": b"",
    "objects": object_npz(),
    "lying": lying_npz(),
    "text": (lambda data: (np.savez(data, x=np.array(["a", "b"])), data.getvalue())[1])(io.BytesIO()),
    "a single value": (lambda data: (np.savez(data, x=np.float64(3)), data.getvalue())[1])(io.BytesIO()),
    "no rows": (lambda data: (np.savez(data, x=np.zeros((0, 3))), data.getvalue())[1])(io.BytesIO()),
    "other names": (lambda data: (np.savez(data, z=np.zeros(3)), data.getvalue())[1])(io.BytesIO()),
    "complex": (lambda data: (np.savez(data, x=np.zeros(3, complex)), data.getvalue())[1])(io.BytesIO()),
}


@pytest.mark.parametrize("kind", NPZ)
def test_an_npz_that_cannot_be_frozen_is_told_and_no_pickle_is_read(kind, tmp_path):
    (tmp_path / "f.npz").write_bytes(NPZ[kind])
    with pytest.raises(ArgumentError) as raised:
        freeze(tmp_path / "f.npz", tmp_path / "d.zarr", observations="x")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "d.zarr").exists()


def test_a_parquet_that_cannot_be_frozen_is_told(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    cases = {
        "nulls": {"x": pyarrow.array([1.0, None])},
        "texts": {"x": pyarrow.array(["a", "b"])},
        "times": {"x": pyarrow.array([1, 2], pyarrow.timestamp("s"))},
        "lists": {"x": pyarrow.array([[1.0], [2.0, 3.0]])},
    }
    for name, columns in cases.items():
        file = parquet_of(tmp_path / f"{name}.parquet", columns)
        with pytest.raises(ArgumentError):
            freeze(file, tmp_path / "d.zarr", observations="x")
    (tmp_path / "g.parquet").write_bytes(b"hello")
    with pytest.raises(ArgumentError, match="Parquet file"):
        freeze(tmp_path / "g.parquet", tmp_path / "e.zarr", observations="x")
    assert not (tmp_path / "d.zarr").exists()


def test_arguments_that_do_not_fit_are_named(tmp_path):
    file = npz_of(tmp_path / "f.npz", {"a": np.zeros(5), "b": np.zeros(5, np.float32), "c": np.zeros(4)})
    for arguments, said in (
        ({"observations": ["a", "b"]}, "share one dtype"),
        ({"observations": []}, "at least one"),
        ({"observations": ["a"], "targets": "c"}, "one length"),
        ({"observations": "a", "dtype": "float32"}, "left out"),
        ({"observations": "a", "others": {"targets": "b"}}, "names of their own"),
    ):
        with pytest.raises(ArgumentError, match=said):
            freeze(file, tmp_path / "d.zarr", **arguments)
    with pytest.raises(ArgumentError, match="must end in"):
        freeze(tmp_path / "f.xlsx", tmp_path / "d.zarr", observations="a")
    with pytest.raises(ArgumentError, match="there must be a file"):
        freeze(tmp_path / "g.npz", tmp_path / "d.zarr", observations="a")
