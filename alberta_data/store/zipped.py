"""A dataset in a zip, as a stranger may send it: checked before a byte of it is used.

Names, kinds, sizes and places of all entries are checked when it is opened. What an entry gives is counted against the
size that was told, so that no archive gives more than it says. Stored as it is, it is read in place (`ZipSource`);
compressed as well, from its first byte to its last (`ArchiveSource`).
"""

from __future__ import annotations

import os
import stat
import struct
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from alberta_data.errors import DamagedDatasetError, RefusedError, StorageError
from alberta_data.store.metadata import ROOT
from alberta_data.store.sources import MissingFileError, fill

_LOCAL = struct.Struct("<4s5H3I2H")
_ENCRYPTED, _UTF8, _SIZES_FOLLOW = 0x41, 0x800, 0x8
_MOST_ENTRIES = 2**20
_PIECE = 2**18


class ArchiveSource:
    """A zip file on this machine, compressed or not, below `NAME/` or at its top.

    Args:
        path: of the zip.

    Raises:
        RefusedError: not a zip, or one with entries that are encrypted, links, devices, twice there, of names that
            differ in case alone, that name a place outside, or whose headers contradict each other.
        DamagedDatasetError: a zip that was cut.
        StorageError: it cannot be read.
    """

    local = True

    def __init__(self, path: Path | str):
        self.path, self.name = Path(path), str(path)
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as err:
            raise StorageError(f"opening {path} failed: {err.strerror}; check the path") from None
        self._close = weakref.finalize(self, os.close, self._fd)
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise RefusedError(f"a packed dataset must be a file, got something else at {path}: refused")
            self._entries = _entries(self.name, self._fd)
            self._prefix = _prefix(self.name, self._entries)
        except BaseException:
            self.close()
            raise

    def list(self) -> Iterator[str]:
        """Yield the path of every file; of one beside the dataset's folder, its name in the archive."""
        for name in self._entries:
            yield name.removeprefix(self._prefix)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._entry(path).file_size

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were."""
        with self.open(path) as file:
            skipped = bytearray(min(start, _PIECE))
            while start > 0:
                got = file.readinto(memoryview(skipped)[: min(start, _PIECE)])
                if got == 0:
                    return 0
                start -= got
            done = 0
            while done < len(buffer) and (got := file.readinto(buffer[done:])):
                done += got
            return done

    def open(self, path: str) -> _Entry:
        """Return a file to be read from its first byte to its last."""
        return _Entry(self.name, self._fd, self._entry(path))

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    def _entry(self, path: str) -> zipfile.ZipInfo:
        try:
            return self._entries[self._prefix + path]
        except KeyError:
            raise MissingFileError("no file") from None


class ZipSource(ArchiveSource):
    """A zip file whose entries are stored as they are, read in place; otherwise like `ArchiveSource`.

    Raises:
        RefusedError: an entry is compressed; or see `ArchiveSource`.
    """

    def __init__(self, path: Path | str):
        super().__init__(path)
        for name, entry in self._entries.items():
            if entry.compress_type != zipfile.ZIP_STORED:
                self.close()
                raise RefusedError(
                    f"{path} must be stored uncompressed to be read in place, got {name!r:.200}: unpack it first"
                )

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were."""
        entry = self._entry(path)
        length = max(min(len(buffer), entry.file_size - start), 0)
        try:
            return fill(self._fd, buffer[:length], self._data_offset(entry) + start)
        except OSError as err:
            raise StorageError(f"reading {self.name} failed: {err.strerror}; check the disk and try again") from None

    def _data_offset(self, entry: zipfile.ZipInfo) -> int:
        return _offset_of(self.name, self._fd, entry)


class _Entry:
    """The bytes of an entry, decompressed; never more than its size."""

    def __init__(self, name: str, fd: int, entry: zipfile.ZipInfo):
        self._name, self._fd, self._entry = name, fd, entry
        self._at, self._stop = entry.header_offset, 0
        self._at = _offset_of(name, fd, entry)
        self._stop = self._at + entry.compress_size
        self._left = entry.file_size
        self._inflate = zlib.decompressobj(-15) if entry.compress_type == zipfile.ZIP_DEFLATED else None

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`, and return how much; 0 at the end.

        Raises:
            DamagedDatasetError: the entry cannot be decompressed.
        """
        wanted = min(len(buffer), self._left)
        if wanted == 0:
            return 0
        data = self._read(wanted) if self._inflate is None else self._inflated(wanted)
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def _read(self, most: int) -> bytes:
        try:
            data = os.pread(self._fd, min(most, self._stop - self._at), self._at)
        except OSError as err:
            raise StorageError(f"reading {self._name} failed: {err.strerror}; check the disk and try again") from None
        self._at += len(data)
        return data

    def _inflated(self, wanted: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None
        try:
            while not inflate.eof:
                given = inflate.unconsumed_tail or self._read(_PIECE)
                if data := inflate.decompress(given, wanted):
                    return data
                if not given:
                    break
        except zlib.error:
            raise DamagedDatasetError(
                f"{self._name} must be a whole zip, got bytes in {self._entry.filename!r:.200} that cannot be unpacked",
                chunk=self._entry.filename,
            ) from None
        return b""

    def close(self) -> None:
        """Let go of it."""

    def __enter__(self) -> _Entry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _entries(name: str, fd: int) -> dict[str, zipfile.ZipInfo]:
    """Return name → entry of every file in the archive, all of them checked."""
    try:
        with open(fd, "rb", closefd=False) as file, zipfile.ZipFile(file) as archive:
            found, directory = archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, OSError) as err:
        if os.pread(fd, 2, 0) == b"PK":
            raise DamagedDatasetError(f"{name} must be a whole zip, got one that is cut: {err}", chunk=name) from None
        raise RefusedError(f"a packed dataset must be a zip, got another file at {name}: refused") from None
    if len(found) > _MOST_ENTRIES:
        raise RefusedError(f"{name} must hold at most {_MOST_ENTRIES} entries, got {len(found)}: refused")
    entries: dict[str, zipfile.ZipInfo] = {}
    folded: dict[str, str] = {}
    for entry in found:
        _check_entry(name, entry)
        key = entry.orig_filename.rstrip("/").casefold()
        if key in folded:
            both = f"{folded[key]!r:.100} and {entry.orig_filename!r:.100}"
            raise RefusedError(f"{name} must hold no name twice, whatever its case, got {both}: refused")
        folded[key] = entry.orig_filename
        entries[entry.orig_filename] = entry
    _check_parents(name, folded, entries)
    _check_places(name, fd, found, directory)
    return {path: entry for path, entry in entries.items() if not path.endswith("/")}


def _check_entry(name: str, entry: zipfile.ZipInfo) -> None:
    path, mode = entry.orig_filename, entry.external_attr >> 16
    parts = path.removesuffix("/").split("/")
    if any(part in ("", ".", "..") for part in parts) or any(c in path for c in "\\:\0") or path != entry.filename:
        raise RefusedError(f"{name} must name places inside it, got {path!r:.200}: refused")
    if stat.S_IFMT(mode) not in (0, stat.S_IFDIR if path.endswith("/") else stat.S_IFREG):
        raise RefusedError(f"{name} must hold plain files, got {path!r:.200} of another kind: refused")
    if entry.flag_bits & _ENCRYPTED:
        raise RefusedError(f"{name} must not be encrypted, got {path!r:.200} that is: unpack it yourself first")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedError(f"{name} must be stored or deflated, got {path!r:.200} in another way: refused")
    stored = entry.compress_type == zipfile.ZIP_STORED
    if (stored and entry.compress_size != entry.file_size) or (path.endswith("/") and entry.file_size):
        raise RefusedError(f"{name} must have entries of one size, got {path!r:.200} with two: refused")
    # Deflate cannot do better than 1,032 : 1, so anything more is a lie.
    if entry.file_size > 1032 * entry.compress_size + 1032:
        raise RefusedError(f"{name} must tell true sizes, got {entry.file_size} bytes of {path!r:.200}: refused")


def _check_parents(name: str, folded: dict[str, str], entries: dict[str, zipfile.ZipInfo]) -> None:
    """Check that no file stands where another entry needs a folder."""
    for path in folded:
        above = path.rpartition("/")[0]
        while above:
            found = folded.get(above)
            if found is not None and not found.endswith("/"):
                raise RefusedError(
                    f"{name} must hold a file or a folder of a name, got both of {above!r:.200}: refused"
                )
            above = above.rpartition("/")[0]


def _check_places(name: str, fd: int, found: list[zipfile.ZipInfo], directory: int) -> None:
    """Check that entries lie one after another, before the directory, and that their own headers say the same."""
    end = 0
    for entry in sorted(found, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise RefusedError(
                f"{name} must hold entries side by side, got {entry.filename!r:.200} in another: refused"
            )
        end = _offset_of(name, fd, entry) + entry.compress_size
    if end > directory:
        raise RefusedError(f"{name} must hold entries before its directory, got one beyond: refused")


def _offset_of(name: str, fd: int, entry: zipfile.ZipInfo) -> int:
    """Return where an entry's bytes begin, from its own header, which must not contradict the directory.

    Raises:
        RefusedError: it does.
    """
    header = os.pread(fd, _LOCAL.size, entry.header_offset)
    if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
        raise RefusedError(f"{name} must hold {entry.filename!r:.200} where it says, got other bytes there: refused")
    _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = _LOCAL.unpack(header)
    own = os.pread(fd, name_size, entry.header_offset + _LOCAL.size)
    told = entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
    wrong = own != told or method != entry.compress_type or flags & _ENCRYPTED
    if not flags & _SIZES_FOLLOW:
        sizes = ((crc, entry.CRC), (packed, entry.compress_size), (size, entry.file_size))
        wrong = wrong or any(mine != theirs and mine != 0xFFFFFFFF for mine, theirs in sizes)
    if wrong:
        raise RefusedError(f"{name} must say the same twice of {entry.filename!r:.200}, got two stories: refused")
    return entry.header_offset + _LOCAL.size + name_size + extra_size


def _prefix(name: str, entries: dict[str, zipfile.ZipInfo]) -> str:
    """Return what stands before every path of the dataset: nothing, or `NAME/`."""
    if ROOT in entries:
        return ""
    tops = [path.removesuffix(ROOT) for path in entries if path.count("/") == 1 and path.endswith(f"/{ROOT}")]
    if len(tops) != 1:
        raise RefusedError(f"{name} must hold one dataset, got {len(tops)}: refused")
    return tops[0]
