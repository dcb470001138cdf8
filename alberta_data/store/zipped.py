"""A dataset packed in a zip without compression, read in place.

The archive is a stranger's: names, sizes and offsets are checked before anything is read through them.
"""

from __future__ import annotations

import os
import stat
import struct
import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path

from alberta_data.errors import DamagedDatasetError, RefusedError, StorageError
from alberta_data.store.metadata import ROOT
from alberta_data.store.sources import MissingFileError, fill

_LOCAL = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x1


class ZipSource:
    """A zip file on this machine whose entries are stored as they are, below `NAME/` or at its top.

    Args:
        path: of the zip.

    Raises:
        RefusedError: not a zip, or one with entries that are compressed, encrypted, links, twice there, or that name a
            place outside.
        DamagedDatasetError: a zip that was cut.
    """

    local = True

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.name = str(path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._fd)
        try:
            self._entries = _entries(self.path)
            self._prefix = _prefix(self.path, self._entries)
        except BaseException:
            self.close()
            raise

    def list(self) -> Iterator[str]:
        """Yield the path of every file, of one beside the dataset's folder too."""
        for name in self._entries:
            yield name.removeprefix(self._prefix)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._entry(path).file_size

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were."""
        entry = self._entry(path)
        length = max(min(len(buffer), entry.file_size - start), 0)
        try:
            return fill(self._fd, buffer[:length], self._data_offset(entry) + start)
        except OSError as err:
            raise StorageError(f"reading {self.name} failed: {err.strerror}; check the disk and try again") from None

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    def _entry(self, path: str) -> zipfile.ZipInfo:
        try:
            return self._entries[self._prefix + path]
        except KeyError:
            raise MissingFileError("no file") from None

    def _data_offset(self, entry: zipfile.ZipInfo) -> int:
        """Return where an entry's bytes begin, from its local header, which must name the same file."""
        header = os.pread(self._fd, _LOCAL.size, entry.header_offset)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
            raise MissingFileError("no entry where the zip says")
        *_, name_size, extra_size = _LOCAL.unpack(header)
        name = os.pread(self._fd, name_size, entry.header_offset + _LOCAL.size)
        if name != entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437"):
            raise MissingFileError("an entry of another name")
        return entry.header_offset + _LOCAL.size + name_size + extra_size


def _entries(path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return name → entry of every file in the archive, all of them checked."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as err:
        with path.open("rb") as file:
            begins_like_one = file.read(2) == b"PK"
        if begins_like_one:
            raise DamagedDatasetError(
                f"{path} must be a whole zip, got one that is cut: {err}", chunk=path.name
            ) from None
        raise RefusedError(f"a dataset must be a folder or a zip, got another file at {path}") from None
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in found:
        _check_entry(path, entry)
        if entry.orig_filename in entries:
            raise RefusedError(f"{path} must hold each name once, got {entry.orig_filename!r} twice: refused")
        entries[entry.orig_filename] = entry
    return {name: entry for name, entry in entries.items() if not name.endswith("/")}


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    parts = name.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts) or any(c in name for c in "\\:\0") or name != entry.filename:
        raise RefusedError(f"{path} must name places inside it, got {name!r}: refused")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise RefusedError(f"{path} must hold plain files, got {name!r} of another kind: refused")
    if entry.flag_bits & _ENCRYPTED:
        raise RefusedError(f"{path} must not be encrypted, got {name!r} that is: unpack it first")
    if entry.compress_type != zipfile.ZIP_STORED:
        raise RefusedError(f"{path} must be stored uncompressed to be read in place, got {name!r}: unpack it first")
    if entry.compress_size != entry.file_size or entry.header_offset < 0:
        raise RefusedError(f"{path} must have entries of one size, got {name!r} with two: refused")


def _prefix(path: Path, entries: dict[str, zipfile.ZipInfo]) -> str:
    """Return what stands before every path of the dataset: nothing, or `NAME/`."""
    if ROOT in entries:
        return ""
    tops = [name.removesuffix(ROOT) for name in entries if name.count("/") == 1 and name.endswith(f"/{ROOT}")]
    if len(tops) != 1:
        raise RefusedError(f"{path} must hold one dataset, got {len(tops)}: unpack it first")
    return tops[0]
