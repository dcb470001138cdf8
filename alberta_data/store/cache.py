"""Files of datasets elsewhere, kept on this machine: checked when they come in and when they go out, oldest out first.

A file is kept under a digest of what it is, so neither an address nor a secret stands in the cache.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.store import disk
from alberta_data.store.parts import Part, check_quickly
from alberta_data.store.sources import fill

MOST_BYTES = 10 * 10**9
_SUFFIX, _WRITING = ".part", ".writing"
# Seconds in which a file that is being written has surely come; one that is older was left behind.
_YOUNG = 3600


class _Folder:
    """What is known of a cache's folder, for every `Cache` of this process that lies in it.

    Attributes:
        lock: held while the rest is looked at or changed.
        size: bytes that are kept or promised; None where the folder has not been looked at.
        coming: bytes of files on their way in, which a look at the folder can't see yet.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.size: int | None = None
        self.coming: dict[Path, int] = {}


_folders: dict[Path, _Folder] = {}
_folders_lock = threading.Lock()


def _known(folder: Path) -> _Folder:
    with _folders_lock:
        return _folders.setdefault(Path(os.path.realpath(folder)), _Folder())


class Cache:
    """A folder of files, at most so many bytes.

    Every `Cache` of a process that lies in one folder keeps to the limit together; another process's files are
    counted when the folder is looked at, which is when there seems to be no room left.

    A disk that fails or is full is no error here: the file is then simply not kept.

    Args:
        folder: where they lie; it is made.
        most_bytes: those used longest ago go when there are more.
    """

    def __init__(self, folder: Path | str, most_bytes: int = MOST_BYTES):
        self.folder, self.most_bytes = Path(folder), most_bytes
        self._shared = _known(self.folder)

    def get(self, dataset_id: str, part: Part) -> np.ndarray | None:
        """Return a file's bytes, or None where it is not kept or is not what it was."""
        path = self._path(dataset_id, part)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = np.empty(part.record.size, np.uint8)
            if os.fstat(fd).st_size == len(data) and fill(fd, data.data, 0) == len(data):
                check_quickly(part, data)
                with suppress(OSError):
                    os.utime(path)
                return data
        except (OSError, DamagedDatasetError):
            pass
        finally:
            os.close(fd)
        self.forget(dataset_id, part)
        return None

    def put(self, dataset_id: str, part: Part, data: np.ndarray) -> None:
        """Keep a file's bytes, which have been checked."""
        if len(data) > self.most_bytes // 2:
            return
        path = self._path(dataset_id, part)
        writing = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{_WRITING}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_room(writing, len(data))
        except OSError:
            return
        try:
            disk.unlink(writing)
            fd = disk.create(writing)
            try:
                disk.write_all(fd, data, 0)
            finally:
                disk.close(fd)
            self._settle(writing, path)
        except OSError:
            with suppress(OSError):
                disk.unlink(writing)
        finally:
            self._drop(writing)

    def forget(self, dataset_id: str, part: Part) -> None:
        """Remove a file."""
        path = self._path(dataset_id, part)
        with suppress(OSError), self._shared.lock:
            size = path.lstat().st_size
            disk.unlink(path)
            self._shared.size = None if self._shared.size is None else self._shared.size - size

    def _path(self, dataset_id: str, part: Part) -> Path:
        text = f"{dataset_id}\0{part.path}\0{part.record.size}\0{part.record.sha256 or ''}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}{_SUFFIX}"

    def _make_room(self, writing: Path, size: int) -> None:
        """Promise a file its place, first removing what was used longest ago where there is too little."""
        known = self._shared
        with known.lock:
            if known.size is None or known.size + size > self.most_bytes:
                kept = [entry for entry in self._kept() if entry[2] not in known.coming]
                known.size = sum(bytes_ for _, bytes_, _ in kept) + sum(known.coming.values())
                for _, bytes_, path in sorted(kept, key=lambda entry: entry[0]):
                    if known.size + size <= self.most_bytes:
                        break
                    if not self._is_written_elsewhere(path):
                        disk.unlink(path)
                        known.size -= bytes_
            if known.size + size > self.most_bytes:
                raise OSError(errno.ENOSPC, "all that is kept is still on its way in")
            known.size += size
            known.coming[writing] = size

    def _settle(self, writing: Path, path: Path) -> None:
        """Give a file its name; what had it before counts no more."""
        known = self._shared
        with known.lock:
            with suppress(OSError):
                before = path.lstat().st_size
                known.size = None if known.size is None else known.size - before
            disk.rename(writing, path)
            known.coming.pop(writing)

    def _drop(self, writing: Path) -> None:
        """Take back the promise of a file that did not come."""
        known = self._shared
        with known.lock:
            size = known.coming.pop(writing, 0)
            known.size = None if known.size is None else known.size - size

    @staticmethod
    def _is_written_elsewhere(path: Path) -> bool:
        """Say whether another process is at a file: it is not of this one, and young."""
        if not path.name.endswith(_WRITING):
            return False
        with suppress(OSError):
            return time.time() - path.lstat().st_mtime < _YOUNG
        return False

    def _kept(self) -> list[tuple[float, int, Path]]:
        """Return time of last use, size and path of every file; other files in the folder are not ours."""
        kept = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                if entry.name.endswith((_SUFFIX, _WRITING)) and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    kept.append((found.st_mtime, found.st_size, Path(entry.path)))
        return kept
