"""A dataset that is there already: every byte checked, and what is missing or damaged brought again, file by file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from alberta_data.errors import DamagedDatasetError, DestinationError
from alberta_data.share.landing import WRITING
from alberta_data.share.transfer import fill_from, reader_of
from alberta_data.store import destination, disk
from alberta_data.store.checking import verify
from alberta_data.store.finishing import write_file
from alberta_data.store.metadata import Root
from alberta_data.store.parts import Part, check_part, part_of, parts
from alberta_data.store.sources import FolderSource, Source

Progress = Callable[[int, int], None]


def mend(
    source: Source, root: Root, path: Path, there: Root, workers: int, progress: Progress | None
) -> tuple[int, int]:
    """Bring again what is missing or damaged of a dataset; return how many files came, and how many bytes.

    Args:
        source: where the same dataset is whole.
        root: the source's.
        path: of the dataset.
        there: its root; of the same id.
        workers: threads that check.
        progress: called with bytes checked and all bytes.

    Raises:
        DamagedDatasetError: it is damaged, and the source holds it in another form.
        DestinationError: it is being changed by another process.
    """
    came = size = 0
    broken = _broken(path, there, workers, progress)
    for wider in (False, True):
        if not broken:
            break
        wanted = _of_their_arrays(there, broken) if wider else [part for part, _ in broken]
        _replace(source, root, path, wanted)
        came, size = came + len(wanted), size + sum(part.record.size for part in wanted)
        broken = _broken(path, there, workers, None)
    for _, damage in broken:
        raise damage
    return came, size


_Broken = list[tuple[Part, DamagedDatasetError]]


def _broken(path: Path, there: Root, workers: int, progress: Progress | None) -> _Broken:
    """Return the files that are not what was written; of a leaf over several files that is wrong, the first."""
    with closing(FolderSource(path)) as landed:
        damages = verify(landed, there, workers=workers, progress=progress).damages
    found: _Broken = []
    for damage in damages:
        part = part_of(there, damage.chunk or "")
        if part is None:
            raise damage
        found.append((part, damage))
    return found


def _of_their_arrays(there: Root, broken: _Broken) -> list[Part]:
    """Return every file of the arrays concerned: which one makes a leaf wrong cannot be told."""
    arrays = {part.array for part, _ in broken}
    return [part for part in parts(there) if part.array in arrays]


def _replace(source: Source, root: Root, path: Path, wanted: list[Part]) -> None:
    for part in wanted:
        if root.files.get(part.path) != part.record:
            raise DamagedDatasetError(
                f"{part.path} in {path} is damaged, and {source.name} holds the dataset in another form: "
                "--overwrite brings it whole",
                array=part.array,
                chunk=part.path,
            )
    lock = disk.lock(path)
    if lock is None:
        raise DestinationError(f"{path} must not be in use, got another process at work on it")
    try:
        for part in wanted:
            _bring(source, root, path, part)
        _sync_folders(path, wanted)
    finally:
        os.close(lock)


def _bring(source: Source, root: Root, path: Path, part: Part) -> None:
    retrying = getattr(source, "retrying", lambda work: work())
    data = retrying(lambda: _read(source, root, part))
    final = path / part.path
    for parent in reversed(final.parents[: part.path.count("/")]):
        if not parent.is_dir() or parent.is_symlink():
            if os.path.lexists(parent):
                destination.remove_tree(parent)
            disk.make_folder(parent)
    writing = final.with_name(final.name + WRITING)
    disk.unlink(writing)
    write_file(writing, data)
    if final.is_dir() and not final.is_symlink():
        destination.remove_tree(final)
    disk.rename(writing, final)


def _read(source: Source, root: Root, part: Part) -> np.ndarray:
    data = np.empty(part.record.size, np.uint8)
    with closing(reader_of(source, part)) as reader:
        got = fill_from(reader, data)
    check_part(root, part, data[:got])
    return data


def _sync_folders(path: Path, broken: list[Part]) -> None:
    folders = {parent for part in broken for parent in (path / part.path).parents[: part.path.count("/") + 1]}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        disk.sync_folder(folder)
