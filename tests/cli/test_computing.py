"""jax and memory made ready for the commands that compute."""

import ctypes
from types import SimpleNamespace

import pytest

from alberta_data.cli import computing


@pytest.fixture
def told(monkeypatch):
    for name in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    calls = []
    library = SimpleNamespace(mallopt=lambda option, value: calls.append((option, value)))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    return calls


def test_what_a_block_frees_is_kept_in_one_arena(told):
    computing.prepare_to_generate()
    assert dict(told) == {-8: 1, -1: 2**29, -3: 2**25}


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_of_the_person_stand(told, monkeypatch, name):
    monkeypatch.setenv(name, "2")
    computing.prepare_to_generate()
    assert told == []


def test_learning_keeps_malloc_as_it_is(told):
    computing.prepare()
    assert told == []


@pytest.mark.parametrize("library", [SimpleNamespace(), None])
def test_another_c_library_is_left_alone(monkeypatch, library):
    def load(name):
        if library is None:
            raise OSError
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    computing.prepare_to_generate()


def test_glibc_takes_every_setting():
    # jaxlib comes for glibc alone, so there is one wherever this runs.
    mallopt = ctypes.CDLL(None).mallopt
    assert [mallopt(option, value) for option, value in computing._MALLOC.items()] == [1, 1, 1]
