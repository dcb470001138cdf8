"""What we write is read alike by zarr, xarray, dask and tensorstore."""

import warnings

import numpy as np
import pytest

from alberta_data.store import ArrayDeclaration, open_store
from alberta_data.store.layout import CODECS, DTYPES
from tests.store.made import SMALL, Recipe

ARRAYS = (
    ArrayDeclaration("observations", "float32", (3,)),
    *(ArrayDeclaration(f"of_{dtype}", dtype, (2,)) for dtype in DTYPES),
    ArrayDeclaration("flat", "int16", ()),
    ArrayDeclaration("deep", "float64", (2, 3)),
)


@pytest.fixture(scope="module", params=CODECS)
def written(request, tmp_path_factory):
    recipe = Recipe(steps=100, chunk_steps=30, codec=request.param, block=40, arrays=ARRAYS)
    path = tmp_path_factory.mktemp("interop") / "d.zarr"
    recipe.write(path)
    return recipe, path


def test_zarr_reads_every_dtype_and_codec(written):
    import zarr

    recipe, path = written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(str(path), mode="r")
        assert set(group.array_keys()) == {array.name for array in ARRAYS}
        for array in ARRAYS:
            found = group[array.name]
            assert found.dtype == array.dtype
            assert found.metadata.dimension_names == array.dimension_names
            assert np.array_equal(found[:], recipe.rows(array, 0, 100))
        assert np.array_equal(group["checkpoints/inner/weights"][:], [recipe.state(0)["inner/weights"]])
        assert group.attrs["alberta_data"]["spec"] == recipe.spec
        unconsolidated = zarr.open_group(str(path), mode="r", use_consolidated=False)
        assert np.array_equal(unconsolidated["flat"][:], recipe.rows(ARRAYS[-2], 0, 100))


def test_xarray_and_dask_read_every_dtype_and_codec(written):
    import dask
    import dask.array
    import xarray

    recipe, path = written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = xarray.open_zarr(str(path), mask_and_scale=False)
        for array in ARRAYS:
            assert dataset[array.name].dims[0] == "step"
            assert np.array_equal(dataset[array.name].values, recipe.rows(array, 0, 100))
        with dask.config.set(scheduler="synchronous"):
            lazy = dask.array.from_zarr(str(path), component="observations")
            assert np.array_equal(lazy.compute(), recipe.rows(ARRAYS[0], 0, 100))


def test_tensorstore_reads_every_dtype_and_codec(written):
    tensorstore = pytest.importorskip("tensorstore")

    recipe, path = written
    for array in ARRAYS:
        kvstore = {"driver": "file", "path": f"{path}/{array.name}/"}
        found = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, read=True).result()
        assert np.array_equal(found.read().result(), recipe.rows(array, 0, 100))


def test_we_read_what_we_write(written):
    recipe, path = written
    with open_store(path) as store:
        assert store.verify().ok
        for array in ARRAYS:
            assert np.array_equal(store.read(array.name), recipe.rows(array, 0, 100))


def test_rows_equal_to_the_fill_value_are_on_disk(tmp_path):
    class Zeros(Recipe):
        def rows(self, array, start, stop):
            return np.zeros((stop - start, *array.row_shape), array.dtype)

    root = Zeros(steps=100, chunk_steps=10).write(tmp_path / "d")
    assert all((tmp_path / "d" / name).is_file() for name in root.files)


def test_zarr_with_its_own_strictness_or_without_reads_ours_alike(tmp_path):
    import zarr

    SMALL.write(tmp_path / "d")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = zarr.open_group(str(tmp_path / "d"), mode="r")["rewards"][:]
    assert np.array_equal(rows, SMALL.rows(SMALL.arrays[2], 0, SMALL.steps))
