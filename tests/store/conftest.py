"""The long counts run with `-m torture` alone; nothing here needs jax, or a disk that really syncs."""

import os

import pytest


def pytest_collection_modifyitems(config, items):
    if "torture" in (config.option.markexpr or ""):
        return
    for item in items:
        if item.get_closest_marker("torture"):
            item.add_marker(pytest.mark.skip(reason="runs with -m torture"))


@pytest.fixture
def unsynced(monkeypatch):
    """Take the waiting out of syncs where their order alone is looked at."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
