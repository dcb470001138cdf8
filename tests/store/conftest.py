"""The long counts run with `-m torture` alone; nothing here needs jax, or a disk that really syncs."""

import os

import pytest


@pytest.fixture
def unsynced(monkeypatch):
    """Take the waiting out of syncs where their order alone is looked at."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
