"""One file brought from an address, gone on with where it was interrupted."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import DestinationError
from alberta_data.store import addresses, disk
from alberta_data.store.addresses import AddressError

_PIECE = 2**20

Progress = Callable[[int, int], None]


def download(remote: Any, path: Path, progress: Progress | None = None) -> Path:
    """Bring the file that a transport's own address names, and return its path.

    Nothing is said here of what is in it: whoever reads it checks it.

    Args:
        remote: see `addresses.transport`.
        path: where it goes; what is there already is taken for its beginning.
        progress: called with bytes done and all bytes, where the server tells.

    Raises:
        StorageError: the network still fails after some tries; what came is kept.
        OSError: the disk failed.
    """
    disk.make_parents(path)
    tries = 0
    while True:
        before = path.stat().st_size if path.is_file() else 0
        try:
            _go_on(remote, path, before, progress)
            return path
        except AddressError as err:
            if err.status == 416 and before:
                return path  # Nothing comes after what is there.
            came = path.stat().st_size if path.is_file() else 0
            tries = 0 if came > before else tries + 1
            if tries >= len(addresses.WAITS):
                raise
            time.sleep(max(addresses.WAITS[tries], err.wait))


def _go_on(remote: Any, path: Path, start: int, progress: Progress | None) -> None:
    with remote.open("", start) as answer:
        fd = disk.reopen(path) if path.is_file() else disk.create(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            at = answer.start
            disk.truncate(fd, at)
            size = None if answer.size is None else at + answer.size
            piece = np.empty(_PIECE, np.uint8)
            while got := answer.readinto(piece.data):
                disk.write_all(fd, piece[:got], at)
                at += got
                if progress is not None and size is not None:
                    progress(at, size)
            disk.sync(fd)
        except BlockingIOError:
            raise DestinationError(f"{path} must not be in use, got another process at work on it") from None
        finally:
            disk.close(fd)
    disk.sync_folder(path.absolute().parent)
