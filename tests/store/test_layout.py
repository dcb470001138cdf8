"""Leaves, chunks, plans: the numbers of format 1."""

import numpy as np
import pytest

from alberta_data.errors import ArgumentError
from alberta_data.store import ArrayDeclaration, plan
from alberta_data.store.layout import ArrayLayout, default_chunk_rows, leaf_rows
from tests.store.made import SMALL

OBSERVATIONS = ArrayDeclaration("observations", "float32", (20,))
TARGETS = ArrayDeclaration("targets", "float32", (1,))


@pytest.mark.parametrize(
    ("row_bytes", "rows"),
    [(1, 65_536), (80, 65_536), (128, 65_536), (129, 32_768), (80_000, 64), (2**23, 1), (2**30, 1)],
)
def test_a_leaf_is_the_largest_power_of_two_of_rows_in_8_mib(row_bytes, rows):
    assert leaf_rows(row_bytes) == rows


@pytest.mark.parametrize(
    ("rows", "row_bytes", "chunk"),
    [
        (1, 80, 1),
        (1000, 80, 1000),
        (2**18, 80, 2**18),
        (2**18 + 1, 80, 2**15),
        (10**6, 80, 2**18),
        (10**7, 80, 2**16),
        (2**19, 80, 2**18),
        (2**18 + 2**17, 80, 2**18),
        (2**18 + 2**17 - 1, 80, 2**17),
        (10**6, 4000, 2**13),
        (10**6, 2**26, 1),
    ],
)
def test_chunks_have_their_usual_size(rows, row_bytes, chunk):
    assert default_chunk_rows(rows, row_bytes) == chunk


def test_a_plan_tells_the_files_and_bytes_that_come(tmp_path):
    for codec in ("none", "fast"):
        recipe = SMALL.but(codec=codec, episode=0)
        root = recipe.write(tmp_path / codec)
        told = plan(recipe.declarations, recipe.steps, recipe.state(0), chunk_steps=recipe.chunk_steps, codec=codec)
        files = [path for path in (tmp_path / codec).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        assert told.files == len(files) == len(root.files) + 1
        assert told.size >= size
        assert told.root_size >= (tmp_path / codec / "zarr.json").stat().st_size
        assert told.size_on_disk >= sum(path.stat().st_blocks * 512 for path in files)


def test_too_many_files_are_refused_with_a_chunk_size_that_fits():
    with pytest.raises(ArgumentError, match=r"at most 20000 files, got 2000\d\d: chunks of 1024 steps fit, or --force"):
        plan([OBSERVATIONS, TARGETS], 10**7, chunk_steps=100)
    assert plan([OBSERVATIONS, TARGETS], 10**7, chunk_steps=100, force=True).files > 200_000
    assert plan([OBSERVATIONS, TARGETS], 10**7, chunk_steps=1024).files < 20_000


def test_chunks_over_1_gib_and_roots_over_64_mib_are_refused_before_the_first_step():
    with pytest.raises(ArgumentError, match=r"1 GiB, .* at most 13421772 rows fit"):
        plan([OBSERVATIONS], 10**8, chunk_steps=10**8)
    with pytest.raises(ArgumentError, match="larger chunks"):
        plan([OBSERVATIONS, TARGETS], 10**8, chunk_steps=100, force=True)


@pytest.mark.parametrize("steps", [0, -5, 2**53, 1.5, True, "10"])
def test_steps_are_integers_from_1_to_2_53(steps):
    with pytest.raises(ArgumentError, match="steps must be"):
        plan([OBSERVATIONS], steps)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": ""},
        {"name": "checkpoints"},
        {"name": "zarr.json"},
        {"name": ".hidden"},
        {"dtype": "object"},
        {"dtype": "complex64"},
        {"dtype": ">f4"},
        {"row_shape": (0,)},
        {"dimension_names": ("step", "step")},
        {"columns": ("a",)},
    ],
)
def test_a_declaration_out_of_range_is_refused(wrong):
    with pytest.raises(ArgumentError):
        ArrayDeclaration(**{"name": "x", "dtype": "float32", "row_shape": (2,), **wrong})


def test_a_document_is_read_back_as_its_layout():
    for dtype in ("bool", "uint8", "int64", "float16", "float64"):
        for codec in ("none", "fast", "small"):
            layout = ArrayDeclaration("x", dtype, (3, 2)).laid_out(100, 7, codec)
            assert ArrayLayout.from_document("x", layout.document()) == layout


def test_padding_is_the_fill_value():
    assert np.isnan(OBSERVATIONS.laid_out(10, 7, "none").padding(2).view("<f4")).all()
    assert not ArrayDeclaration("x", "int16", ()).laid_out(10, 7, "none").padding(2).any()
