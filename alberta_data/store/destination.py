"""What lies where a dataset is to go, and how a finished one takes its place.

Only our own datasets are ever replaced or removed. An exchange that was cut is known by a mark in the old dataset,
which is set, and on the disk, before the first of the two names changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.errors import AlbertaDataError, ArgumentError, DestinationError, IncompleteDatasetError
from alberta_data.store import canonical, disk
from alberta_data.store.journal import JOURNAL
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.zipped import ZipSource

MARK = ".replaced"
_OURS = (b'"alberta_data":{', b'"format_version"')


def check_folder_name(path: Path) -> None:
    """Check that a dataset's folder is not given the name of a packed file.

    Raises:
        ArgumentError: it ends in `.zip`.
    """
    if path.suffix == ".zip":
        raise ArgumentError(f"a dataset is a folder and cannot be called {path.name}: write NAME.zarr, then `pack` it")


def partial_path(path: Path) -> Path:
    """Return the folder in which the dataset of `path` is made."""
    return path.with_name(f"{path.name}.partial")


def aside_path(path: Path) -> Path:
    """Return the name of an old dataset between two renames, where names cannot be exchanged."""
    return path.with_name(f"{path.name}.replaced")


@dataclass(frozen=True)
class Existing:
    """One of our datasets at a destination: its root, or None where the root is damaged."""

    path: Path
    root: Root | None

    def sizes_differ(self) -> str | None:
        """Return the first file that is missing or of another size, or None."""
        if self.root is None:
            return ROOT
        for name, record in self.root.files.items():
            try:
                found = os.stat(self.path / name).st_size
            except OSError:
                return name
            if found != record.size:
                return name
        return None

    def stray(self) -> str | None:
        """Return the first file that the root does not name, dot-files apart, or None."""
        if self.root is None:
            return None
        for folder, _, names in os.walk(self.path):
            for name in names:
                below = os.path.relpath(os.path.join(folder, name), self.path)
                if below != ROOT and below not in self.root.files and not name.startswith("."):
                    return below
        return None


def look(path: Path) -> Existing | None:
    """Return what lies at `path`: one of our finished datasets, or None where nothing does.

    Raises:
        DestinationError: something else lies there.
    """
    if not os.path.lexists(path):
        return None
    if path.is_symlink() or not path.is_dir():
        kind = "a link" if path.is_symlink() else "a file"
        raise DestinationError(f"destination must be free or our own dataset, got {kind} at {path}: take another name")
    try:
        data = (path / ROOT).read_bytes()
    except OSError:
        raise DestinationError(
            f"destination must be free or our own dataset, got another folder at {path}: take another name"
        ) from None
    try:
        return Existing(path, Root.from_bytes(data))
    except AlbertaDataError:
        if all(mark in data for mark in _OURS):
            return Existing(path, None)
        raise DestinationError(
            f"destination must be free or our own dataset, got another tool's at {path}: take another name"
        ) from None


def check_replaceable(existing: Existing) -> None:
    """Check that a dataset may be replaced: nothing of anybody else's is in it, and it can be written to.

    Raises:
        DestinationError: it may not.
    """
    if stray := existing.stray():
        raise DestinationError(f"a dataset to replace must hold nothing else, got {stray} in {existing.path}: move it")
    if not os.access(existing.path, os.W_OK) or not os.access(existing.path.parent, os.W_OK):
        raise DestinationError(f"a dataset to replace must be writable, got {existing.path} read-only")


def difference(there: Any, asked: Any, where: str = "") -> str | None:
    """Return the first entry in which two JSON values differ, as `name is … there, … asked for`, or None."""
    if isinstance(there, Mapping) and isinstance(asked, Mapping):
        for key in sorted({*there, *asked}):
            if found := difference(there.get(key), asked.get(key), f"{where}.{key}" if where else str(key)):
                return found
        return None
    if canonical.dumps(there) == canonical.dumps(asked):
        return None
    return f"{where} is {there!r:.80} there, {asked!r:.80} asked for"


def place(partial: Path, path: Path, dataset_id: str, *, overwrite: bool) -> None:
    """Give a finished dataset its name, in place of one of ours where `overwrite` says so.

    Raises:
        DestinationError: something lies at the name that is not to be replaced.
    """
    existing = look(path)
    if existing is None:
        disk.rename(partial, path)
        disk.sync_folder(path.parent)
        return
    if not overwrite:
        raise DestinationError(f"destination must be free, got a dataset that came meanwhile at {path}")
    _mark(path, dataset_id)
    old = partial
    if not disk.exchange(partial, path):
        old = aside_path(path)
        disk.rename(path, old)
        disk.rename(partial, path)
    disk.sync_folder(path.parent)
    remove(old)


def tidy(path: Path) -> bool:
    """Finish an exchange of names that was cut, and say whether anything was changed.

    The caller holds the lock of the unfinished folder.
    """
    partial, aside = partial_path(path), aside_path(path)
    if marked(partial) is not None:
        remove(partial)
    elif marked(aside) is not None:
        if os.path.lexists(path):
            remove(aside)
        elif marked(aside) == _finished_id(partial):
            disk.rename(partial, path)
            disk.sync_folder(path.parent)
        else:
            disk.rename(aside, path)
            disk.unlink(path / MARK)
            disk.sync_folder(path.parent)
    elif marked(path) is not None and marked(path) == _finished_id(partial):
        place(partial, path, marked(path) or "", overwrite=True)
    else:
        return False
    return True


def marked(folder: Path) -> str | None:
    """Return the id of the dataset that was to replace the one in `folder`, or None."""
    if folder.is_symlink():
        return None
    try:
        return (folder / MARK).read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None


def is_finished(partial: Path) -> bool:
    """Say whether a folder holds a whole root and no journal, so that it only has to be renamed."""
    return _finished_id(partial) is not None


def _finished_id(partial: Path) -> str | None:
    if (partial / JOURNAL).exists():
        return None
    try:
        return Root.from_bytes((partial / ROOT).read_bytes()).id
    except (OSError, AlbertaDataError):
        return None


def _mark(path: Path, dataset_id: str) -> None:
    disk.unlink(path / MARK)
    fd = disk.create(path / MARK)
    try:
        disk.write_all(fd, dataset_id.encode("ascii"), 0)
        disk.sync(fd)
    finally:
        disk.close(fd)
    disk.sync_folder(path)


def remove(folder: Path) -> None:
    """Remove a dataset's folder: the root first, so that what is left is never taken for whole; the mark last."""
    disk.unlink(folder / ROOT)
    disk.sync_folder(folder)
    for entry in [entry for entry in folder.iterdir() if entry.name != MARK]:
        remove_tree(entry)
    # A power cut must not take the mark and leave the rest, which nobody would then know for ours.
    disk.sync_folder(folder)
    disk.unlink(folder / MARK)
    disk.remove_folder(folder)
    disk.sync_folder(folder.parent)


def remove_tree(path: Path) -> None:
    """Remove a file, a link (not what it points to), or a folder with everything in it."""
    if path.is_symlink() or not path.is_dir():
        disk.unlink(path)
        return
    for entry in path.iterdir():
        remove_tree(entry)
    disk.remove_folder(path)


def delete_dataset(path: Path | str) -> None:
    """Remove one of our datasets: a folder, finished or not, or a packed file.

    Raises:
        DestinationError: something else lies there, or it is being written.
        IncompleteDatasetError: nothing lies there.
    """
    path = Path(path)
    if path.is_file() and not path.is_symlink() and _is_packed(path):
        disk.unlink(path)
        disk.sync_folder(path.absolute().parent)
        return
    unfinished = path.is_dir() and not path.is_symlink() and (path / JOURNAL).is_file()
    if not unfinished and look(path) is None:
        raise IncompleteDatasetError(f"there must be a dataset to delete, got nothing at {path}")
    fd = disk.lock(path)
    if fd is None:
        raise DestinationError(f"a dataset to be deleted must not be in use, got one in use at {path}")
    try:
        remove(path)
    finally:
        os.close(fd)


def _is_packed(path: Path) -> bool:
    """Say whether a file is a zip with one of our datasets in it and nothing else."""
    try:
        with closing(ZipSource(path)) as source:
            data = bytearray(min(source.size(ROOT), canonical.MAX_BYTES))
            source.readinto(ROOT, memoryview(data))
            names = set(source.list())
    except (AlbertaDataError, OSError):
        return False
    try:
        return names <= {ROOT, *Root.from_bytes(bytes(data)).files}
    except AlbertaDataError:
        return all(mark in data for mark in _OURS)
