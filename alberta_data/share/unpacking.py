"""A packed dataset made a folder again, by an extraction of our own.

Only what the root names is taken, each file checked before it gets its name; nothing is written outside the
destination, and nothing is kept where something is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from alberta_data.errors import ArgumentError, DamagedDatasetError, DestinationError, RefusedError, StorageError
from alberta_data.share.landing import Landing
from alberta_data.share.transfer import transfer
from alberta_data.store import canonical, disk
from alberta_data.store import destination as places
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.parts import parts
from alberta_data.store.sources import MissingFileError, read
from alberta_data.store.zipped import ArchiveSource

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Unpacked:
    """What was unpacked.

    Attributes:
        path: where the dataset lies.
        id: its id.
        extra: names in the archive that are not of the dataset, and were left in it.
    """

    path: Path
    id: str
    extra: tuple[str, ...] = ()


def unpack(
    path: Path | str,
    destination: Path | str | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Unpacked:
    """Unpack a dataset into a folder.

    Args:
        path: of the packed file: below `NAME/` in it or at its top, compressed or not.
        destination: of the folder; by default the packed file's own path without `.zip`.
        overwrite: replace one of our own datasets there.
        progress: called with bytes done and all bytes.

    Raises:
        RefusedError: an archive that could do harm, or no dataset of ours; nothing was written.
        DamagedDatasetError: a byte is not what was written; nothing is kept.
        DestinationError: something else lies at the destination.
        StorageError: the disk is too small or fails; nothing is kept.
    """
    path = Path(path)
    if not path.is_file():
        raise ArgumentError(f"there must be a packed dataset at the path given, got none at {path}")
    target = Path(destination) if destination is not None else usual_destination(path)
    source = ArchiveSource(path)
    try:
        return unpack_source(source, target, overwrite=overwrite, progress=progress)
    finally:
        source.close()


def usual_destination(path: Path) -> Path:
    """Return the folder that a packed file unpacks to.

    Raises:
        ArgumentError: its name has no `.zip` to take away.
    """
    if path.suffix.lower() != ".zip" or not path.stem:
        raise ArgumentError(f"destination must be given where a file's name does not end in .zip, got none for {path}")
    return path.with_suffix("")


def unpack_source(
    source: ArchiveSource, target: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Unpacked:
    """Unpack an archive that has been opened, and so been checked as an archive."""
    root = Root.from_bytes(_root_bytes(source))
    for part in parts(root):
        try:
            size = source.size(part.path)
        except MissingFileError:
            size = -1
        if size != part.record.size:
            found = "no file" if size < 0 else str(size)
            raise DamagedDatasetError(
                f"{part.path} in {source.name} must have {part.record.size} bytes, found {found}: get the file again",
                array=part.array,
                chunk=part.path,
            )
    extra = tuple(sorted(name for name in source.list() if name != ROOT and name not in root.files))
    check_destination(target, root, overwrite)
    _check_free(target, root)
    try:
        _land(source, Landing(target, root), overwrite, progress)
    except OSError as err:
        raise disk.failure(err, target) from err
    return Unpacked(target, root.id, extra)


def check_destination(target: Path, root: Root, overwrite: bool) -> None:
    """Check that a dataset may take its name.

    Raises:
        DestinationError: something lies there that is not to be replaced.
    """
    existing = places.look(target)
    if existing is None:
        return
    if not overwrite:
        same = existing.root is not None and existing.root.id == root.id
        said = "this very dataset" if same else "another dataset"
        raise DestinationError(f"destination must be free, got {said} at {target}: take another name, or --overwrite")
    places.check_replaceable(existing)


def _land(source: ArchiveSource, landing: Landing, overwrite: bool, progress: Progress | None) -> None:
    try:
        if landing.is_complete():
            landing.end(overwrite=overwrite)
            return
        transfer(source, landing, progress=progress)
        landing.finish(overwrite=overwrite)
    except BaseException:
        landing.abandon()
        raise
    finally:
        landing.release()


def _root_bytes(source: ArchiveSource) -> bytes:
    size = source.size(ROOT)
    if size > canonical.MAX_BYTES:
        raise RefusedError(f"{ROOT} must have at most {canonical.MAX_BYTES} bytes, got {size}: not a dataset of ours")
    return read(source, ROOT, canonical.MAX_BYTES)


def _check_free(target: Path, root: Root) -> None:
    free = disk.free_bytes(target)
    if root.size > free:
        raise StorageError(f"{target} needs {root.size} bytes, got {free} bytes free on its disk; make room")
    if not os.access(target.absolute().parent, os.W_OK) and target.absolute().parent.exists():
        raise DestinationError(f"destination must be in a folder that can be written to, got {target}")
