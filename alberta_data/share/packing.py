"""A dataset in one file: a zip without compression, the same bytes for the same dataset, read in place.

Every byte is checked on its way: what is packed is whole.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import AlbertaDataError, ArgumentError, DestinationError
from alberta_data.share.archives import ArchiveWriter
from alberta_data.share.opening import opened
from alberta_data.store import canonical, disk
from alberta_data.store.chunks import read_file
from alberta_data.store.codecs import compress, crc32c, crc_bytes
from alberta_data.store.layout import CODECS, ArrayLayout
from alberta_data.store.metadata import ROOT, FileRecord, Root, sha256_of
from alberta_data.store.parts import Part, check_part, check_spanning, parts
from alberta_data.store.reader import Store, open_store

SUFFIX = ".zip"
_WRITING = ".partial"

Progress = Callable[[int, int], None]


def pack(
    dataset: Any,
    path: Path | str | None = None,
    codec: str | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Pack a dataset into one file and return its path; what lies there already and is the same stays.

    Args:
        dataset: a path, or a dataset that is open.
        path: of the file; by default the dataset's own path with `.zip` after it.
        codec: `none`, `fast` or `small`: compress the chunks anew, the id stays; None for as they are.
        overwrite: replace a packed dataset at `path`.
        progress: called with bytes done and all bytes.

    Raises:
        ArgumentError: an unknown codec.
        DamagedDatasetError: a byte is not what was written; nothing is left.
        DestinationError: something else lies at `path`, or another process is packing to it.
        StorageError: the disk failed; nothing is left that looks whole.
    """
    if codec is not None and codec not in CODECS:
        raise ArgumentError(f"codec must be one of {', '.join(CODECS)}, got {codec!r}")
    with opened(dataset) as store:
        path = Path(path) if path is not None else _usual_path(store)
        content = _Content(store, codec)
        if _already_there(path, store, content, overwrite):
            return path
        try:
            _write(path, content, progress)
        except OSError as err:
            raise disk.failure(err, path) from err
        return path


def _usual_path(store: Store) -> Path:
    if not store.source.local:
        raise ArgumentError("path must be given where a dataset at an address is packed, got none")
    path = Path(store.name)
    if path.is_file():
        raise ArgumentError(f"path must be given where a packed dataset is packed again, got none for {path}")
    path = path if path.name not in ("", "..") else path.resolve()
    return path.with_name(path.name + SUFFIX)


class _Content:
    """The files of the packed dataset, in order, each checked; the root comes last."""

    def __init__(self, store: Store, codec: str | None):
        self._store = store
        layouts = store.root.layouts
        self._new = {
            name: replace(layouts[name], codec=codec)
            for name in store.root.arrays
            if codec is not None and layouts[name].codec != codec
        }
        self.size = store.root.size

    @property
    def root(self) -> Root | None:
        """The root, where it is known before anything is compressed."""
        return None if self._new else self._store.root

    def is_packed_as(self, root: Root) -> bool:
        """Say whether a dataset of another root holds the same in the same form."""
        mine = {path: self._new.get(path, layout) for path, layout in self._store.root.layouts.items()}
        told = (self._store.root.id, self._store.root.about, self._store.root.extensions, self._store.root.made_with)
        return (root.id, root.about, root.extensions, root.made_with) == told and root.layouts == mine

    def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
        source, root = self._store.source, self._store.root
        files: dict[str, FileRecord] = {}
        for part in parts(root):
            data = read_file(source, part.array, part.path, part.record)
            rows = check_part(root, part, data)
            data, files[part.path] = self._renewed(part, data, rows)
            yield part.path, data
        check_spanning(source, root)
        documents = {**root.documents, **{name: layout.document() for name, layout in self._new.items()}}
        new = replace(root, files=files, documents=documents) if self._new else root
        yield ROOT, np.frombuffer(new.to_bytes(), np.uint8)

    def _renewed(self, part: Part, data: np.ndarray, rows: np.ndarray | None) -> tuple[np.ndarray, FileRecord]:
        """Return what a file becomes under another codec, and its record."""
        layout = self._new.get(part.path.partition("/")[0])
        if layout is None:
            return data, part.record
        if part.layout is None:
            data = np.frombuffer(canonical.dumps(layout.document()), np.uint8)
            return data, FileRecord(len(data), sha256_of(data))
        assert rows is not None
        data = _encoded(layout, rows)
        return data, FileRecord(len(data), None if layout.codec == "none" else sha256_of(data))


def _encoded(layout: ArrayLayout, rows: np.ndarray) -> np.ndarray:
    body = rows if layout.codec == "none" else np.frombuffer(compress(layout, rows), np.uint8)
    return np.concatenate([body, np.frombuffer(crc_bytes(crc32c(body)), np.uint8)])


def _already_there(path: Path, store: Store, content: _Content, overwrite: bool) -> bool:
    """Say whether what is asked for lies at the path.

    Raises:
        DestinationError: something else does.
    """
    if not os.path.lexists(path):
        return False
    if path.is_symlink() or not path.is_file():
        kind = "a link" if path.is_symlink() else "a folder"
        raise DestinationError(f"destination must be free or a packed dataset, got {kind} at {path}: take another name")
    try:
        with open_store(path) as there:
            if content.is_packed_as(there.root) and there.verify(quick=True).ok:
                return True
            found = there.root.id
    except (AlbertaDataError, OSError):
        if not overwrite or not _is_zip(path):
            raise DestinationError(
                f"destination must be free or a packed dataset, got another file at {path}: take another name"
            ) from None
        return False
    if not overwrite:
        raise DestinationError(
            f"{path} holds a packed dataset with the id {found[:8]}…: take another name, or --overwrite"
        )
    return False


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _write(path: Path, content: _Content, progress: Progress | None) -> None:
    writing = path.with_name(path.name + _WRITING)
    disk.make_parents(path)
    fd = locked(writing)
    try:
        archive, done = ArchiveWriter(fd), 0
        for name, data in content:
            archive.add(name, data)
            done += len(data)
            if progress is not None:
                progress(min(done, content.size), content.size)
        archive.finish()
        disk.protect(fd)
        disk.sync(fd)
        disk.rename(writing, path)
    except BaseException:
        disk.unlink(writing)
        raise
    finally:
        disk.close(fd)
    disk.sync_folder(path.absolute().parent)


def locked(writing: Path) -> int:
    """Return the descriptor of a new file, locked; one that a killed process left goes away.

    Raises:
        DestinationError: another process is at work on it, or it is something else.
    """
    while True:
        try:
            fd = disk.create(writing)
        except FileExistsError:
            _clear(writing)
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(writing, follow_symlinks=False), os.fstat(fd)):
                return fd
        except (BlockingIOError, FileNotFoundError):
            pass  # Another process took it for one that was left.
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)


def _clear(writing: Path) -> None:
    try:
        fd = os.open(writing, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError:
        raise DestinationError(f"{writing} must be free, got something else there: move it") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise DestinationError(f"{writing} must be free, got something else there: move it")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        disk.unlink(writing)
    except BlockingIOError:
        raise DestinationError(f"{writing} must not be in use, got another process at work on it") from None
    finally:
        os.close(fd)
