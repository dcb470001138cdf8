"""Damage done on purpose, and what must come of it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from alberta_data.errors import AlbertaDataError
from alberta_data.store import canonical, open_store
from alberta_data.store.metadata import KEY


def overwrite(path: Path, data: bytes):
    """Put other bytes into a file of a finished dataset."""
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    path.write_bytes(data)


def flip(path: Path, byte: int, bit: int):
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    overwrite(path, bytes(data))


def learn(store):
    """Read as a learner does: every block in order; return the number of steps that were handed on."""
    steps = 0
    with store.blocks() as blocks:
        for block in blocks:
            steps += len(block)
    return steps


def found_by_verify(path, quick=False):
    """Return (array, chunk) of every damage that `verify` lists."""
    with open_store(path) as store:
        return {(damage.array, damage.chunk) for damage in store.verify(quick=quick).damages}


def in_one_line(error):
    """Return an error of ours after a look at its message."""
    assert str(error)
    assert "\n" not in str(error)
    return error


def refused(path):
    """Return the error with which a dataset is not opened, or with which it is not learned from."""
    try:
        with open_store(path) as store:
            learn(store)
            report = store.verify()
    except AlbertaDataError as err:
        return in_one_line(err)
    if report.damages:
        return report.damages[0]
    return None


def reseal(path: Path, change):
    """Let `change` alter the root document, then seal it again, as a publisher could who means harm."""
    file = path / "zarr.json"
    document = canonical.loads(file.read_bytes())
    change(document)
    ours = document["attributes"][KEY]
    ours.pop("seal", None)
    try:
        for name, inner in document["consolidated_metadata"]["metadata"].items():
            data = canonical.dumps(inner)
            if "sha256" in ours["files"][f"{name}/zarr.json"] and (path / name / "zarr.json").is_file():
                ours["files"][f"{name}/zarr.json"].update(size=len(data), sha256=hashlib.sha256(data).hexdigest())
                overwrite(path / name / "zarr.json", data)
    except (AlbertaDataError, AttributeError, TypeError, KeyError, ValueError, OSError):
        pass
    try:
        ours["seal"] = canonical.digest(ours)
        overwrite(file, canonical.dumps(document))
    except AlbertaDataError:
        import json

        ours["seal"] = "0" * 64
        overwrite(file, json.dumps(document, separators=(",", ":"), sort_keys=True).encode())
