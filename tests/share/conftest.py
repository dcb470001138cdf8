"""Prepared datasets, made once; nothing here needs a disk that really syncs."""

import os
import shutil
import stat

import pytest

from tests.store.made import LEAFY, PACKED, SMALL, TINY

SHAPES = {"small": SMALL, "packed": PACKED, "leafy": LEAFY, "tiny": TINY}


@pytest.fixture
def unsynced(monkeypatch):
    """Take the waiting out of syncs where their order alone is looked at."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Name → path of a dataset that no test changes."""
    folder = tmp_path_factory.mktemp("made")
    known = {}

    def of(name):
        if name not in known:
            known[name] = folder / f"{name}.zarr"
            SHAPES[name].write(known[name])
        return known[name]

    return of


@pytest.fixture
def copied(made, tmp_path):
    """Return a copy of a dataset that may be changed, and how to change a file of it."""

    def of(name):
        path = tmp_path / "copies" / f"{name}.zarr"
        shutil.copytree(made(name), path)
        for file in path.rglob("*"):
            file.chmod(file.stat().st_mode | stat.S_IWUSR)
        return path

    return of


def flip(path, at=-20):
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def is_whole(path):
    """Say whether a dataset is in order, with nothing beside it."""
    from alberta_data.store import open_store

    with open_store(path) as store:
        report = store.verify()
    return report.ok and not report.notes
