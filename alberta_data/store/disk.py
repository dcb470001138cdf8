"""Every change the writer makes to a disk, one function each.

Nothing else in `store/` creates, writes, syncs, renames or removes. What a crash may leave behind can be read off the
order of these calls, and the tests stop, fail and reorder them here.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from alberta_data.errors import StorageError

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def make_folder(path: Path) -> None:
    """Make one folder; its parent must exist and it must not."""
    os.mkdir(path)


def make_parents(path: Path) -> None:
    """Make the folders above a path that are missing, each on the disk before the next."""
    for parent in reversed([parent for parent in path.absolute().parents if not parent.exists()]):
        with suppress(FileExistsError):  # another process may have made it meanwhile
            make_folder(parent)
        sync_folder(parent.parent)


def create(path: Path) -> int:
    """Create a file that does not exist and return its descriptor, open for writing."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def reopen(path: Path) -> int:
    """Open an existing file of the writer's own for writing and return its descriptor."""
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def write(fd: int, data: np.ndarray | bytes, offset: int) -> int:
    """Write at `offset` and return how many bytes were taken, which may be fewer than given."""
    return os.pwrite(fd, data, offset)


def write_all(fd: int, data: np.ndarray | bytes, offset: int) -> None:
    """Write all of `data` (bytes, or an array of uint8) at `offset`.

    Raises:
        OSError: the disk took nothing more.
    """
    while len(data):
        taken = write(fd, data, offset)
        if taken <= 0:
            raise OSError(errno.EIO, "the disk took none of the bytes")
        data, offset = data[taken:], offset + taken


def truncate(fd: int, size: int) -> None:
    """Cut a file to `size` bytes."""
    os.ftruncate(fd, size)


def protect(fd: int) -> None:
    """Take the write permissions off a file."""
    os.fchmod(fd, os.fstat(fd).st_mode & 0o555)


def sync(fd: int) -> None:
    """Wait until a file's bytes and permissions are on the disk."""
    os.fsync(fd)


def close(fd: int) -> None:
    """Close a descriptor."""
    os.close(fd)


def sync_folder(path: Path) -> None:
    """Wait until a folder's entries are on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def rename(old: Path, new: Path) -> None:
    """Give a file or folder its new name, in place of a file of that name."""
    os.rename(old, new)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False where the system or the file system cannot."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(one))


def unlink(path: Path) -> None:
    """Remove a file; one that is gone already is no error."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def remove_folder(path: Path) -> None:
    """Remove an empty folder; one that is gone already is no error."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return


def lock(path: Path) -> int | None:
    """Lock a folder on a descriptor of its own and return that, or None if another process holds the lock.

    The lock ends with the descriptor, so a killed process leaves none behind.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


def free_bytes(path: Path) -> int:
    """Return the bytes this user can still write where `path` lies or would lie."""
    for folder in (path, *path.absolute().parents):
        try:
            found = os.statvfs(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return found.f_bavail * found.f_frsize
    return 0


def failure(err: OSError, path: Path) -> StorageError:
    """Return the one-line error for an operation that failed while a dataset was being written.

    Args:
        err: what the system said.
        path: of the dataset.
    """
    if isinstance(err, StorageError):
        return err
    reason = err.strerror or str(err)
    if err.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = f"{reason}, {free_bytes(path)} bytes free"
    return StorageError(f"writing {path} failed: {reason}; put it right, and the same command goes on from here")
