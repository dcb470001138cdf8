"""Where a dataset's files are read from: a folder here, a zip beside it, an address elsewhere.

A source knows files by their path below the dataset and nothing of what is in them.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from alberta_data.errors import ArgumentError, StorageError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(:/|::)")

# What the system says when something else lies in a file's place, or nothing; anything else is a failing disk.
_NOT_A_FILE = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO),
    *(errno.ENAMETOOLONG, errno.ENODEV),
}


def is_address(text: Any) -> bool:
    """Say whether a text is an address and not a path: `scheme:/…`, or a chain of such."""
    return isinstance(text, str) and _ADDRESS.match(text) is not None


def check_id(text: str | None) -> str | None:
    """Return an id given by a person, or None.

    Raises:
        ArgumentError: not all 64 digits.
    """
    if text is None:
        return None
    if not re.fullmatch(r"[0-9a-f]{64}", text.lower()):
        raise ArgumentError(f"id must be 64 hex digits, got {len(text)} characters: across a network only all 64 count")
    return text.lower()


class MissingFileError(Exception):
    """There is no readable file at a path: `str()` says what there is."""


class Source(Protocol):
    """What the reader asks of a place.

    Every method may be called from several threads. A file that is not there, or that cannot be a file, raises
    `MissingFileError`; a failing disk or network raises `StorageError`.

    Attributes:
        name: the place, for messages: no user name, password or token in it.
        local: whether asking for a file that is not there costs nothing.
    """

    name: str
    local: bool

    def list(self) -> Iterator[str]:
        """Yield the path of everything that is not a folder."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were, at most its length."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


def read(source: Source, path: str, limit: int) -> bytes:
    """Return the bytes of a file, one byte more than `limit` at most.

    Raises:
        MissingFileError: there is no such file.
    """
    buffer = bytearray(min(source.size(path), limit + 1))
    return bytes(buffer[: source.readinto(path, memoryview(buffer))])


class FolderSource:
    """A folder on this machine.

    Args:
        path: of the folder.
    """

    local = True

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.name = str(path)
        # Files are found from this descriptor, so a dataset that is renamed or replaced meanwhile stays the same one.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._fd)

    def list(self) -> Iterator[str]:
        """Yield the path of everything that is not a folder; links are yielded, not followed."""
        for folder, folders, names, fd in os.fwalk(".", dir_fd=self._fd):
            links = [name for name in folders if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)]
            for name in (*names, *links):
                yield os.path.normpath(os.path.join(folder, name))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        try:
            found = os.stat(path, dir_fd=self._fd)
        except OSError as err:
            raise _missing(err) from None
        _check_plain(found.st_mode)
        return found.st_size

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError as err:
            raise _missing(err) from None
        try:
            _check_plain(os.fstat(fd).st_mode)
            return fill(fd, buffer, start)
        except OSError as err:
            raise _missing(err) from None
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let go of the folder."""
        self._close()


def fill(fd: int, buffer: memoryview, start: int) -> int:
    """Fill `buffer` from a descriptor's byte `start` on and return how many bytes there were."""
    done = 0
    while done < len(buffer):
        got = os.preadv(fd, [buffer[done:]], start + done)
        if got == 0:
            break
        done += got
    return done


def _check_plain(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise MissingFileError("a folder")
    if not stat.S_ISREG(mode):
        raise MissingFileError("something that is no file")


def _missing(err: OSError) -> Exception:
    if err.errno in _NOT_A_FILE:
        return MissingFileError("no file" if err.errno == errno.ENOENT else err.strerror or "no file")
    return StorageError(f"reading {err.filename or 'a file'} failed: {err.strerror}; check the disk and try again")
