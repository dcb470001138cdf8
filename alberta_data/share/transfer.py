"""Brings the files of a dataset from a source into a folder: several at once, each checked before it gets its name.

A file that is there already is checked where it lies, and comes again only if it is damaged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from alberta_data.errors import DamagedDatasetError
from alberta_data.share.landing import Landing
from alberta_data.store import disk
from alberta_data.store.chunks import damaged
from alberta_data.store.parts import BareCheck, Part, check_part, check_spanning, parts
from alberta_data.store.sources import FolderSource, MissingFileError, Source

_PIECE = 2**18

Progress = Callable[[int, int], None]


class Reader(Protocol):
    """A file that is read from its first byte to its last."""

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`, and return how much; 0 at the end."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class _StoppedError(Exception):
    """Another thread has failed, and its error is the one to tell."""


class _InPlace:
    """A file of a source that is read by offset."""

    def __init__(self, source: Source, path: str):
        self._source, self._path, self._at = source, path, 0

    def readinto(self, buffer: memoryview) -> int:
        got = self._source.readinto(self._path, buffer, self._at)
        self._at += got
        return got

    def close(self) -> None:
        """Nothing is held."""


def transfer(
    source: Source, landing: Landing, *, workers: int = 2, progress: Progress | None = None
) -> tuple[int, int]:
    """Bring every file of a dataset; return how many files came, and how many bytes.

    Args:
        source: where they come from. With an `open`, files are read through it; with a `retrying`, each file is tried
            again as it says.
        landing: where they go.
        workers: files at once.
        progress: called from this thread with the bytes done and the bytes of all.

    Raises:
        DamagedDatasetError: a file is not what the root says.
        StorageError: the source failed.
        OSError: the disk failed.
    """
    return _Transfer(source, landing, landing.folder).run(workers, progress)


class _Transfer:
    def __init__(self, source: Source, landing: Landing, folder: Path):
        self._source, self._landing, self._root = source, landing, landing.root
        self._folder = folder
        self._waiting = parts(landing.root)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done = self._files = self._bytes = 0

    def run(self, workers: int, progress: Progress | None) -> tuple[int, int]:
        self._landing.make_folders()
        total = self._root.size
        with ThreadPoolExecutor(workers, "alberta-data transfer") as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                waiting = set(futures)
                while waiting:
                    _, waiting = wait(waiting, timeout=0.2)
                    if progress is not None:
                        progress(min(self._done, total), total)
            except BaseException:
                self._stop.set()
                raise
        for future in futures:
            future.result()
        with closing(FolderSource(self._folder)) as landed:
            check_spanning(landed, self._root)
        return self._files, self._bytes

    def _next(self) -> Part | None:
        with self._lock:
            return next(self._waiting, None)

    def _work(self) -> None:
        buffer = np.empty(_PIECE, np.uint8)
        try:
            with closing(FolderSource(self._folder)) as landed:
                while not self._stop.is_set() and (part := self._next()) is not None:
                    if not self._is_there(landed, part, buffer):
                        self._bring(part, buffer)
        except _StoppedError:
            return
        except BaseException:
            self._stop.set()
            raise

    def _is_there(self, landed: FolderSource, part: Part, buffer: np.ndarray) -> bool:
        if not os.path.lexists(self._folder / part.path):
            return False
        try:
            if landed.size(part.path) != part.record.size or (self._folder / part.path).is_symlink():
                return False
            for _ in self._checked(_InPlace(landed, part.path), part, buffer):
                pass
        except (DamagedDatasetError, MissingFileError):
            return False
        self._count(part.record.size)
        return True

    def _bring(self, part: Part, buffer: np.ndarray) -> None:
        retrying: Callable[[Callable[[], Any]], Any] = getattr(self._source, "retrying", lambda work: work())
        fd = retrying(lambda: self._write(part, buffer))
        # Several threads wait for the disk at once, so that it writes many files in one go.
        self._landing.publish(part, fd)
        with self._lock:
            self._files, self._bytes = self._files + 1, self._bytes + part.record.size

    def _write(self, part: Part, buffer: np.ndarray) -> int:
        """Write a checked file and return its descriptor."""
        at = 0
        fd = self._landing.create(part)
        try:
            reader = reader_of(self._source, part)
            try:
                for piece in self._checked(reader, part, buffer):
                    disk.write_all(fd, piece, at)
                    at += len(piece)
                    self._count(len(piece))
            finally:
                reader.close()
        except BaseException:
            disk.close(fd)
            self._count(-at)
            raise
        return fd

    def _count(self, size: int) -> None:
        with self._lock:
            self._done += size

    def _checked(self, reader: Reader, part: Part, buffer: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the pieces of a file; it is what the root says once the last one has been asked for."""
        if not part.is_bare:
            data = np.empty(part.record.size, np.uint8)
            got = fill_from(reader, data)
            if got != len(data) or reader.readinto(buffer.data):
                found = str(got) if got < len(data) else f"more than {len(data)}"
                raise damaged(part.array, part.path, f"expected {len(data)} bytes, found {found}")
            check_part(self._root, part, data)
            yield data
            return
        check = BareCheck(self._root, part)
        while got := reader.readinto(buffer.data):
            if self._stop.is_set():
                raise _StoppedError
            check.feed(buffer[:got])
            yield buffer[:got]
        check.finish()


def reader_of(source: Source, part: Part) -> Reader:
    """Return a file of a source, to be read from its first byte to its last.

    Raises:
        DamagedDatasetError: it is not there.
    """
    opener: Callable[[str], Reader] | None = getattr(source, "open", None)
    try:
        if opener is not None:
            return opener(part.path)
        source.size(part.path)
    except MissingFileError as err:
        raise damaged(part.array, part.path, f"expected {part.record.size} bytes, found {err}") from None
    return _InPlace(source, part.path)


def fill_from(reader: Reader, data: np.ndarray) -> int:
    """Fill `data` (uint8) from a reader, and return how many bytes there were."""
    done, view = 0, data.data
    while done < len(data) and (got := reader.readinto(view[done:])):
        done += got
    return done
