"""A dataset brought from elsewhere: whole, checked against its root, and against an id where one is given.

Files come several at once. What was interrupted goes on, and what lies there already comes again only where it is
missing or damaged; the dataset has its name when all of it is right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.errors import DamagedDatasetError, DestinationError, RefusedError, StorageError
from alberta_data.share.landing import Landing, settle
from alberta_data.share.mending import mend
from alberta_data.share.transfer import transfer
from alberta_data.share.whole_file import download
from alberta_data.store import destination, disk
from alberta_data.store.addresses import AddressSource, check_address, local_path, transport
from alberta_data.store.layout import is_name
from alberta_data.store.metadata import Root
from alberta_data.store.reader import open_store
from alberta_data.store.sources import Source, check_id, is_address
from alberta_data.store.zipped import ArchiveSource

Progress = Callable[[int, int], None]
SUFFIX = ".zarr"
_REMOTE_WORKERS, _LOCAL_WORKERS = 8, 2


@dataclass(frozen=True)
class Fetched:
    """What was fetched.

    Attributes:
        path: where the dataset lies.
        id: its id; compared with the one that was given, where one was.
        files: how many files came; none where all was there.
        bytes: how many bytes came.
    """

    path: Path
    id: str
    files: int = 0
    bytes: int = 0


def fetch(
    url: str | Path,
    path: Path | str | None = None,
    id: str | None = None,
    *,
    data_dir: Path | str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    timeout: float = 30.0,
    any_redirect: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Fetched:
    """Bring a dataset to this machine; the same call goes on with one that was interrupted.

    Args:
        url: an address (file, http, https, s3, gs, az, hf) or a path: of a dataset's folder, or of a packed file,
            which is unpacked.
        path: where it goes; by default the address' last name, in the data folder.
        id: the id that it must have, all 64 digits; without it, it is only whole in itself.
        data_dir: the data folder; by default `ALBERTA_DATA_DIR`, else `./datasets`.
        overwrite: replace one of our own datasets at `path` that is another one.
        workers: files at once; by default 8 from elsewhere, 2 on this machine.
        timeout: seconds without a byte after which a server counts as silent.
        any_redirect: follow redirects to another scheme and into the local network too.
        options: passed to fsspec; stored nowhere.
        progress: called with bytes done and all bytes.

    Raises:
        ArgumentError: no usable address, or no dataset at a path.
        DestinationError: something else lies at `path`, or another process is at work on it.
        DamagedDatasetError: what came is not what the root says, again and again; what was right is kept.
        RefusedError: another id, an unsafe archive, no dataset of ours, an address that is not followed.
        StorageError: the network or the disk failed; the same call goes on from there.
    """
    wanted = check_id(id)
    settings = {"timeout": timeout, "any_redirect": any_redirect, "options": options}
    text = str(url)
    if is_address(text):
        check_address(text)
    target = Path(path) if path is not None else _usual_path(text, data_dir)
    here = local_path(text) if is_address(text) else Path(text)
    try:
        if here is None and _is_packed(text):
            return _fetch_packed(text, target, wanted, overwrite, progress, settings)
        with closing(_source(text, here, wanted, settings)) as source:
            root = source.root if isinstance(source, AddressSource) else _root(source)
            check_wanted(source, root, wanted)
            count = workers or (_LOCAL_WORKERS if here is not None else _REMOTE_WORKERS)
            return bring(source, root, target, overwrite=overwrite, workers=count, progress=progress)
    except OSError as err:
        if isinstance(err, StorageError):
            raise
        raise disk.failure(err, target) from err


def bring(
    source: Source,
    root: Root,
    target: Path,
    *,
    overwrite: bool = False,
    workers: int = _LOCAL_WORKERS,
    progress: Progress | None = None,
) -> Fetched:
    """Bring a dataset from a source whose root has been read and checked."""
    settle(target)
    existing = destination.look(target)
    if existing is not None and existing.root is not None and existing.root.id == root.id:
        return Fetched(target, root.id, *mend(source, root, target, existing.root, workers, progress))
    check_place(target, root, overwrite)
    landing = Landing(target, root)
    try:
        came = (0, 0)
        if landing.is_complete():
            landing.end(overwrite=overwrite)
        else:
            _check_free(landing, root)
            came = transfer(source, landing, workers=workers, progress=progress)
            landing.finish(overwrite=overwrite)
        return Fetched(target, root.id, *came)
    finally:
        landing.release()


def check_place(target: Path, root: Root, overwrite: bool) -> None:
    """Check that a dataset may take its name.

    Raises:
        DestinationError: something lies there that is not to be replaced.
    """
    destination.check_folder_name(target)
    existing = destination.look(target)
    if existing is None:
        return
    if not overwrite:
        what = "a damaged dataset" if existing.root is None else f"another dataset, {existing.root.id[:8]}…"
        raise DestinationError(f"destination must be free, got {what} at {target}: take another name, or --overwrite")
    destination.check_replaceable(existing)


def check_wanted(source: Source, root: Root, wanted: str | None) -> None:
    """Check the id against the one that was given.

    Raises:
        RefusedError: it is another.
    """
    if wanted is not None and root.id != wanted:
        raise RefusedError(f"{source.name} must have the id {wanted}, got {root.id}: not the one you named")


def _source(text: str, here: Path | None, wanted: str | None, settings: Mapping[str, Any]) -> Source:
    if here is None:
        return AddressSource(text, id=wanted, **settings)
    if here.is_file():
        return ArchiveSource(here)
    return open_store(here).source


def _root(source: Source) -> Root:
    from alberta_data.store.reader import Store

    return Store(source).root


def _fetch_packed(
    url: str,
    target: Path,
    wanted: str | None,
    overwrite: bool,
    progress: Progress | None,
    settings: Mapping[str, Any],
) -> Fetched:
    """Bring a packed file, go on with it where it was interrupted, and unpack it."""
    existing = destination.look(target)
    if wanted is not None and existing is not None and existing.root is not None and existing.root.id == wanted:
        with open_store(target) as store:
            if store.verify(progress=progress).ok:
                return Fetched(target, wanted)
    with closing(transport(url, **settings)) as remote:
        packed = download(remote, destination.partial_path(target).with_suffix(".download"), progress)
    try:
        with closing(ArchiveSource(packed)) as source:
            root = _root(source)
            check_wanted(source, root, wanted)
            found = bring(source, root, target, overwrite=overwrite, progress=progress)
    except (DamagedDatasetError, RefusedError):
        disk.unlink(packed)  # Going on with it would never make it right.
        raise
    disk.unlink(packed)
    return found


def _is_packed(url: str) -> bool:
    return url.partition("?")[0].partition("#")[0].lower().endswith(".zip")


def _usual_path(url: str, data_dir: Path | str | None) -> Path:
    """Return the name that an address ends in, as a dataset's, in the data folder."""
    last = url.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]
    name = last[: -len(".zip")] if last.lower().endswith(".zip") else last
    if not is_name(name) or name.startswith("."):
        name = "fetched"
    folder = Path(data_dir or os.environ.get("ALBERTA_DATA_DIR") or "datasets")
    return folder / (name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")


def _check_free(landing: Landing, root: Root) -> None:
    there = sum(file.stat().st_size for file in landing.folder.rglob("*") if file.is_file())
    needed, free = max(root.size - there, 0), disk.free_bytes(landing.folder)
    if needed > free:
        raise StorageError(f"{landing.path} needs {needed} bytes, got {free} bytes free on its disk; make room")
