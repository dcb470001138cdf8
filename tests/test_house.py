"""The house holds together: imports point one way, only some rooms know some libraries, quick things stay quick."""

import ast
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import alberta_data
from alberta_data.share import pack

ROOT = Path(alberta_data.__file__).parent
# From the ground up: a room may import from itself and from those before it.
ROOMS = ("lazy", "errors", "parameters", "xla", "exact", "keys", "host_keys", "blocks", "streams", "environments",
         "generation", "store", "dataset", "learners", "replay", "runs", "share", "cli")  # fmt: skip
# Tables of re-exports for code that moves over; see docs/design.md.
TABLES = {"streams/__init__.py", "streams/synthetic.py", "streams/gymnasium.py", "__init__.py", "__main__.py"}
LIBRARIES = {
    "zarr": set(), "numcodecs": {"store"}, "google_crc32c": {"store"}, "rfc8785": {"store"},
    "fsspec": {"store"}, "gymnasium": {"environments"}, "typer": {"cli"}, "click": {"cli"}, "tqdm": {"cli"},
    "pyarrow": {"share"}, "minari": {"share"}, "mlcroissant": {"share"}, "yaml": {"share"},
}  # fmt: skip
FILES = sorted(ROOT.rglob("*.py"))


def imported(path):
    """Yield the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
            if node.module == "alberta_data":
                yield from (f"alberta_data.{alias.name}" for alias in node.names)


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up_the_list_of_rooms_only(path):
    if str(path.relative_to(ROOT)) in TABLES:
        return
    here = ROOMS.index(room_of(path))
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "alberta_data" and len(parts) > 1 and parts[1] in ROOMS:
            assert ROOMS.index(parts[1]) <= here, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_rooms_that_may_know_a_library_import_it(path):
    for name in imported(path):
        allowed = LIBRARIES.get(name.split(".")[0])
        assert allowed is None or room_of(path) in allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_400_lines_or_named_like_one_of_the_standard_library(path):
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem in ("__init__", "__main__") or path.parent != ROOT or path.stem not in sys.stdlib_module_names


def test_every_public_name_can_be_imported_from_the_package():
    for name in alberta_data.__all__:
        assert getattr(alberta_data, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = alberta_data.nothing


def run(code, **env):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})


def test_importing_the_package_imports_no_jax_and_changes_no_environment_variable():
    said = run(
        "import os, sys; before = dict(os.environ); import alberta_data, alberta_data.streams.registry, "
        "alberta_data.learners, alberta_data.store; assert dict(os.environ) == before; "
        "print({'jax', 'gymnasium', 'zarr', 'typer'} & set(sys.modules))"
    )
    assert said.stdout.strip() == "set()", said.stderr


@pytest.mark.parametrize("arguments", [
    ["--help"], ["list"], ["streams"], ["streams", "abrupt"], ["generate", "abrupt", "--help"], ["verify", "--help"],
    ["show", "sample"], ["verify", "sample"], ["diff", "sample", "sample"], ["recipe", "sample"], ["env"],
    ["pack", "sample", "-o", "{}/p.zarr.zip"], ["unpack", "{}/packed.zarr.zip", "-o", "{}/u.zarr"],
    ["fetch", "{}/packed.zarr.zip", "-o", "{}/f.zarr"],
], ids=lambda arguments: " ".join(arguments[:2]))  # fmt: skip
def test_what_needs_no_numbers_runs_where_jax_cannot_be_imported(arguments, tmp_path):
    shutil.copytree(ROOT.parent / "datasets" / "sample.zarr", tmp_path / "sample.zarr")
    pack(tmp_path / "sample.zarr", tmp_path / "packed.zarr.zip")
    words = [word.format(tmp_path) for word in arguments]
    code = (
        "import sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None\n"
        f"from alberta_data.cli.main import main; sys.exit(main({words!r}))"
    )
    said = run(code, ALBERTA_DATA_DIR=str(tmp_path))
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("package", ["alberta_data", "alberta_data.dataset", "alberta_data.store"])
def test_editors_see_the_names_that_a_package_has_and_where_they_are(package):
    module = import_module(package)
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    found = {alias.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert found == (module.HOMES if package == "alberta_data" else module._HOMES)
    listed = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed.value)) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)
