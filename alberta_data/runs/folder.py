"""A run's folder: whole, or resumable, or not there.

Everything is made in `<name>.partial/`, which is locked. It holds `run.json`, what the run is asked to do, and the
checkpoints; both go when the folder takes its name. `receipt.json` is written last.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import AlbertaDataError, DestinationError, RefusedError
from alberta_data.store import canonical, disk
from alberta_data.store.destination import remove_tree
from alberta_data.store.tables import write_file

RECEIPT = "receipt.json"
HEADER = "run.json"
_OURS = {RECEIPT, HEADER, "states.npz", "curves.zarr", "metrics.zarr", "histories.zarr"}


def read_receipt(path: Path | str) -> dict[str, Any]:
    """Return the receipt of a run, given its folder or the file.

    Raises:
        DestinationError: there is none.
        RefusedError: it is not one.
    """
    path = Path(path)
    file = path / RECEIPT if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError:
        raise DestinationError(f"there must be a run's {RECEIPT}, got nothing to read at {file}") from None
    found = canonical.loads(data, RECEIPT)
    if not isinstance(found, dict) or found.get("alberta_data_run") != 1:
        raise RefusedError(f"{RECEIPT} must be that of a run, format 1, got another document: refused")
    return found


def receipt_at(path: Path) -> dict[str, Any] | None:
    """Return the receipt of the finished run at `path`, or None where nothing lies.

    Raises:
        DestinationError: something else lies there.
    """
    if not os.path.lexists(path):
        return None
    try:
        if not path.is_symlink() and path.is_dir():
            return read_receipt(path)
    except AlbertaDataError:
        pass
    raise DestinationError(f"a run's folder must be free or a run, got something else at {path}: take another name")


class RunFolder:
    """The folder of a run in the making; see `begin`."""

    def __init__(self, path: Path):
        self.path = path
        self.partial = path.with_name(f"{path.name}.partial")
        self._lock = -1

    def begin(self, header: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Make the unfinished folder, or take up the one that is there.

        Args:
            header: what the run is asked to do.
            resume: go on with an unfinished run of the same; without one, begin.
            overwrite: throw an unfinished run away.

        A process that was killed just before the folder had its header, or just after it was taken away for the last
        rename, leaves nothing to go on with: such a run begins again.

        Raises:
            DestinationError: an unfinished run is there and neither was said, it is of something else, in use, or
                not a run at all.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        there = os.path.lexists(self.partial)
        if there and (self.partial.is_symlink() or not self.partial.is_dir()):
            raise DestinationError(f"a run's folder must be free, got something else at {self.partial}: remove it")
        if not there:
            disk.make_folder(self.partial)
        lock = disk.lock(self.partial)
        if lock is None:
            raise DestinationError(f"a run's folder must not be in use, got one in use at {self.partial}")
        self._lock = lock
        try:
            if there and not (self.partial / HEADER).is_file():
                self._check_ours()
                self._clear()
            elif there and not overwrite:
                self._check(header, resume)
            else:
                self._clear()
            write_file(self.partial / HEADER, canonical.dumps(header))
        except BaseException:
            self.close()
            raise

    def _check_ours(self) -> None:
        """Check that a folder without a header is one that was cut down in its first or its last moment."""
        for entry in self.partial.iterdir():
            if entry.name not in _OURS and not entry.name.endswith(".writing"):
                raise DestinationError(
                    f"a run's folder must be free, got {entry.name} in {self.partial}: move or remove it"
                )

    def _check(self, header: Mapping[str, Any], resume: bool) -> None:
        if not resume:
            raise DestinationError(
                f"an unfinished run lies at {self.partial}: go on with --resume, or begin again with --overwrite"
            )
        found = canonical.loads((self.partial / HEADER).read_bytes(), HEADER)
        for name in {*header, *(found if isinstance(found, dict) else {})}:
            if not isinstance(found, dict) or found.get(name) != header.get(name):
                raise DestinationError(
                    f"the unfinished run at {self.partial} must have the same {name} to go on: --overwrite begins again"
                )

    def _clear(self) -> None:
        for entry in self.partial.iterdir():
            if entry.name != HEADER:
                remove_tree(entry)

    def save(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write named arrays as `name`.npz, in place of the one before; no pickles."""
        write_file(self.partial / f"{name}.npz", npz(arrays))

    def load(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays saved as `name`, or None."""
        path = self.partial / f"{name}.npz"
        return load_npz(path) if path.is_file() else None

    def finish(self, receipt: Mapping[str, Any], *, replaces: bool) -> None:
        """Take the checkpoints away, write the receipt, and give the folder its name.

        Args:
            receipt: the whole of it.
            replaces: a run of this name is to go.
        """
        for entry in self.partial.iterdir():
            if entry.name not in _OURS:
                remove_tree(entry)
        write_file(self.partial / RECEIPT, canonical.dumps(receipt))
        disk.unlink(self.partial / HEADER)
        if replaces and receipt_at(self.path) is not None:
            if disk.exchange(self.partial, self.path):
                remove_tree(self.partial)
            else:
                remove_tree(self.path)
                disk.rename(self.partial, self.path)
        else:
            disk.rename(self.partial, self.path)
        disk.sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove the unfinished folder: there is nothing to go on with."""
        remove_tree(self.partial)

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock >= 0:
            disk.close(self._lock)
            self._lock = -1


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return named arrays as the bytes of an `.npz`: the same for the same arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz`.

    Raises:
        RefusedError: it is not one, or needs pickles.
    """
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as err:
        raise RefusedError(f"{path.name} must hold arrays without pickles, got {err}: refused") from None
