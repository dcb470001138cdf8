"""Where a writer begins: at nothing, at an unfinished folder, or at a dataset that is there already.

One rule for all: nothing is changed before it is certain that it is ours and asked for, and the lock of the
unfinished folder is held from then on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.errors import DamagedDatasetError, DestinationError
from alberta_data.store import destination, disk
from alberta_data.store.destination import difference, partial_path
from alberta_data.store.journal import JOURNAL
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.resuming import Progress, write_header

_OWN_LEFTOVERS = {JOURNAL, f".{JOURNAL}.writing"}


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        path: of the finished dataset.
        header: what the journal would begin with: spec, made_with, arrays, layout, state before step 0.
        decisive: entries of made_with that can change a bit.
        overwrite: replace one of our own datasets.
        chunk_steps, codec: None for the usual ones, or those that an unfinished dataset was begun with.
    """

    path: Path
    header: Mapping[str, Any]
    decisive: tuple[str, ...]
    overwrite: bool
    chunk_steps: int | None
    codec: str | None


@dataclass
class Begun:
    """An unfinished folder, locked, with a journal."""

    lock: int
    progress: Progress


def already_there(request: Request) -> Root | None:
    """Return the root of the finished dataset at the path, if it is the one asked for and not to be replaced.

    Raises:
        DestinationError: another dataset, or something else, lies there.
        DamagedDatasetError: the dataset is the one asked for, and files are missing or of another size.
    """
    existing = destination.look(request.path)
    if existing is None:
        return None
    if request.overwrite:
        destination.check_replaceable(existing)
        return None
    if existing.root is None:
        raise DestinationError(f"{request.path} holds a damaged dataset: --overwrite replaces it")
    if found := difference(existing.root.spec, request.header["spec"], "spec"):
        raise DestinationError(f"{request.path} holds another dataset, {found}: take another name, or --overwrite")
    if name := existing.sizes_differ():
        raise DamagedDatasetError(
            f"{request.path} is there already, but {name} is missing or of another size: --overwrite makes it again",
            chunk=name,
        )
    return existing.root


def begin(request: Request) -> Begun | Root:
    """Lock and open the unfinished folder, or return the root of the dataset that is there already.

    Raises:
        DestinationError: the destination is taken by something else, or in use.
    """
    partial = partial_path(request.path)
    while True:
        lock = lock_folder(partial)
        try:
            if not destination.tidy(request.path):
                root = _finished(request, partial)
                if root is None:
                    return Begun(lock, _open(request, partial))
                os.close(lock)
                return root
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # Names have changed: the lock may be on another folder now.


def lock_folder(partial: Path) -> int:
    """Return the lock of the unfinished folder, which is made where it is missing."""
    while True:
        if not os.path.lexists(partial):
            _make(partial)
        try:
            lock = disk.lock(partial)
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            raise DestinationError(f"{partial} must be free or a folder of ours, got something else: move it") from None
        if lock is None:
            raise DestinationError(f"{partial.with_suffix('')} must not be in use, got another writer at work on it")
        try:
            found = os.stat(partial, follow_symlinks=False)
            if os.path.samestat(found, os.fstat(lock)):
                return lock
        except FileNotFoundError:
            pass
        os.close(lock)  # The other writer has finished it and given it its name.


def _make(partial: Path) -> None:
    disk.make_parents(partial)
    try:
        disk.make_folder(partial)
    except FileExistsError:
        return
    disk.sync_folder(partial.parent)


def _finished(request: Request, partial: Path) -> Root | None:
    """Return the root if the dataset asked for is there, or in the unfinished folder and only to be renamed."""
    root = already_there(request)
    if root is not None:
        if not any(partial.iterdir()):
            disk.remove_folder(partial)
        return root
    if not destination.is_finished(partial):
        return None
    root = Root.from_bytes((partial / ROOT).read_bytes())
    if found := difference(root.spec, request.header["spec"], "spec"):
        if not request.overwrite:
            raise DestinationError(f"{partial} holds another finished dataset, {found}: rename or delete it")
        return None
    destination.place(partial, request.path, root.id, overwrite=request.overwrite)
    return root


def _open(request: Request, partial: Path) -> Progress:
    progress = Progress.read(partial)
    if progress is None:
        foreign = sorted({entry.name for entry in partial.iterdir()} - _OWN_LEFTOVERS)
        if foreign and not destination.is_finished(partial):
            raise DestinationError(f"{partial} must be free or a folder of ours, got one with {foreign[0]}: move it")
        return write_header(partial, request.header)
    found = _differs(progress.header, request)
    if found is not None and not request.overwrite:
        raise DestinationError(f"{partial} was begun with other settings, {found}: finish it with those, or delete it")
    if found is not None or _laid_out_otherwise(progress.header, request):
        return write_header(partial, request.header)
    return progress


def _differs(header: Mapping[str, Any], request: Request) -> str | None:
    for name in ("spec", "arrays", "state"):
        if found := difference(header[name], request.header[name], name):
            return found
    before, now = header["made_with"], request.header["made_with"]
    decisive = ({name: made.get(name) for name in request.decisive} for made in (before, now))
    return difference(next(decisive), next(decisive), "made_with")


def _laid_out_otherwise(header: Mapping[str, Any], request: Request) -> bool:
    """Say whether another chunk size or codec is asked for than the folder was begun with."""
    if request.codec is not None and request.codec != header["codec"]:
        return True
    return request.chunk_steps is not None and request.chunk_steps != header["chunk_steps"]
