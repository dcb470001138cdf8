"""Every block of code of docs/sharing.md runs with the real packages and reads the dataset's own rows."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from alberta_data.store import open_store

PAGE = (Path(__file__).parents[2] / "docs/sharing.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^(\w+)[^\n]*:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NEEDED = {"PyTorch": "torch"}


def test_the_page_shows_each_reader_once():
    assert [name for name, _ in SNIPPETS] == ["zarr", "xarray", "dask", "tensorstore", "river", "PyTorch"]
    assert PAGE.count("```python") == len(SNIPPETS)


# What these packages warn of at import or leave to the garbage collector is theirs.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "code"), SNIPPETS, ids=[name for name, _ in SNIPPETS])
def test_a_reader_reads_the_datasets_own_rows(name, code, made):
    package = NEEDED.get(name, name)
    if name == "PyTorch" and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; it is in no extra")
    found = {"path": str(made("small"))}
    exec(compile(code, f"docs/sharing.md: {name}", "exec"), found)
    with open_store(made("small")) as store:
        assert np.array_equal(np.asarray(found["rows"]), store.read("observations", 0, 1000))
    if name == "river":
        assert np.isfinite(found["error"].get())
