"""A dataset at an address, read in place: http(s), s3, gs, az, hf.

Files come whole, several ahead, and each is checked by itself (size, digest or CRC, the leaves in it) before it is kept
or handed on; the reader then checks every leaf, as everywhere. A request that fails is tried again, and in the end is a
`StorageError` with the address and the status, never a file that is missing.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from alberta_data.errors import ArgumentError, DamagedDatasetError, RefusedError
from alberta_data.store import canonical
from alberta_data.store.buckets import NEEDS, Bucket
from alberta_data.store.cache import MOST_BYTES, Cache
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.parts import Part, check_part, part_of
from alberta_data.store.sources import FolderSource, MissingFileError, Source, check_id
from alberta_data.store.web import AddressError, Web, shown
from alberta_data.xla import cache_folder

T = TypeVar("T")

SCHEMES = ("file", "http", "https", *NEEDS)
# Waits between tries; a request that was understood and denied is tried again only a little.
WAITS = (0.2, 0.5, 1.0, 2.0)
DENIED_WAITS = (0.1, 0.3)
_AHEAD, _MOST_AHEAD_BYTES, _MOST_HELD_BYTES = 2, 64 * 2**20, 256 * 2**20
_WORKERS = 4


class Transport(Protocol):
    """What brings files from an address."""

    name: str

    def open(self, path: str, start: int = 0) -> Any:
        """Ask for a file."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def check_address(url: str) -> str:
    """Check that an address is of a known scheme, and return the scheme.

    Raises:
        RefusedError: a chain of addresses.
        ArgumentError: another scheme, or no address.
    """
    if "::" in url.partition("?")[0] and not re.match(r"https?://(\S*@)?\[", url):
        raise RefusedError("an address must be one address, got a chain of several with '::': refused")
    scheme = url.partition(":")[0].lower()
    if scheme not in SCHEMES or not url[len(scheme) :].startswith("://"):
        raise ArgumentError(f"an address must begin with one of {', '.join(SCHEMES)} and '://', got {scheme!r:.40}")
    return scheme


def local_path(url: str) -> Path | None:
    """Return the path that a `file://` address names, or None of another address.

    Raises:
        ArgumentError: it names another machine.
    """
    if check_address(url) != "file":
        return None
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ArgumentError("a file:// address must name a file of this machine, got another machine's")
    return Path(unquote(parts.path))


def transport(
    url: str, *, timeout: float = 30.0, any_redirect: bool = False, options: Mapping[str, Any] | None = None
) -> Transport:
    """Return what brings files from an address; nothing is asked yet.

    Raises:
        ArgumentError: the address has another form.
        UnavailableError: the package that its scheme needs is not installed.
    """
    scheme = check_address(url)
    if scheme in NEEDS:
        return Bucket(url, options)
    return Web(url, timeout=timeout, any_redirect=any_redirect)


def retrying(work: Callable[[], T]) -> T:
    """Return what `work` does, tried again where the network failed or what came is damaged.

    Raises:
        StorageError: the network still fails.
        DamagedDatasetError: what comes is still damaged.
    """
    tries = 0
    while True:
        try:
            return work()
        except (AddressError, DamagedDatasetError) as err:
            status, asked = getattr(err, "status", None), getattr(err, "wait", 0.0)
            denied = status is not None and 400 <= status < 500 and status not in (408, 425, 429)
            waits = DENIED_WAITS if denied else WAITS
            if tries >= len(waits):
                raise
            time.sleep(max(waits[tries], min(asked, 10.0)))
            tries += 1


class AddressSource:
    """The files of a dataset at an address.

    Args:
        url: of the dataset's folder; see `SCHEMES`.
        id: the id that it must have, all 64 digits.
        cache_dir: where files are kept; None for nowhere.
        cache_bytes: how much at most.
        timeout: seconds without a byte after which a server counts as silent.
        any_redirect: follow redirects to another scheme and into the local network too.
        options: passed to fsspec; stored nowhere.

    Attributes:
        root: the dataset's, checked.

    Raises:
        ArgumentError: no usable address.
        RefusedError: another id, not a dataset of ours, or an address or a redirect that is not followed.
        DamagedDatasetError: the root is not what was written.
        StorageError: no answer, or no dataset there.
        UnavailableError: the package that its scheme needs is not installed.
    """

    local = False

    def __init__(
        self,
        url: str,
        *,
        id: str | None = None,
        cache_dir: Path | str | None = None,
        cache_bytes: int = MOST_BYTES,
        timeout: float = 30.0,
        any_redirect: bool = False,
        options: Mapping[str, Any] | None = None,
    ):
        wanted = check_id(id)
        self._transport = transport(url, timeout=timeout, any_redirect=any_redirect, options=options)
        self.name = self._transport.name
        self._cache = None if cache_dir is None else Cache(cache_dir, cache_bytes)
        self._lock = threading.Lock()
        self._coming: OrderedDict[str, Future[np.ndarray]] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None
        try:
            self.root_bytes, self.root = self.retrying(self._get_root)
            if wanted is not None and self.root.id != wanted:
                raise RefusedError(f"{self.name} must have the id {wanted}, got {self.root.id}: not the one you named")
        except BaseException:
            self.close()
            raise

    def list(self) -> Iterator[str]:
        """Yield the path of every file: of a web server, which cannot be asked, those that the root names."""
        if isinstance(self._transport, Bucket):
            yield from self._transport.list()
        else:
            yield from (ROOT, *self.root.files)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes: that of one that has come and been checked."""
        return len(self.root_bytes) if path == ROOT else len(self._file(path))

    def readinto(self, path: str, buffer: memoryview, start: int = 0) -> int:
        """Fill `buffer` with the bytes from `start` on, and return how many there were."""
        data = np.frombuffer(self.root_bytes, np.uint8) if path == ROOT else self._file(path)
        part = data[start : start + len(buffer)]
        buffer[: len(part)] = part.data
        return len(part)

    def open(self, path: str) -> _Sized:
        """Return a file to be read from its first byte to its last, as it comes; its size alone is checked."""
        part = part_of(self.root, path)
        if part is None:
            raise MissingFileError("no file")
        return _Sized(self._transport.open(path), self.name, part)

    def retrying(self, work: Callable[[], T]) -> T:
        """Return what `work` does, tried again; see `retrying`."""
        return retrying(work)

    def close(self) -> None:
        """Let go of the connections and of what is in memory."""
        with self._lock:
            pool, self._pool = self._pool, None
            self._coming.clear()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        self._transport.close()

    def _get_root(self) -> tuple[bytes, Root]:
        with self._transport.open(ROOT) as answer:
            data = _all(answer, canonical.MAX_BYTES + 1)
        where = f"{self.name}/{ROOT}"
        if not data:
            raise AddressError(f"{where} answered with no bytes; check the address")
        if not data.lstrip().startswith(b"{") or answer.kind == "text/html":
            raise AddressError(
                f"{where} answered with {answer.kind or 'something'} that is no dataset; check the address"
            )
        return data, Root.from_bytes(data)

    def _file(self, path: str) -> np.ndarray:
        """Return a file's bytes, from memory, the cache or the address, and let those after it come."""
        part = part_of(self.root, path)
        if part is None:
            raise MissingFileError("no file")
        wanted = self._ask(part)
        for following in self._following(part):
            self._ask(following)
        try:
            return wanted.result()
        except BaseException:
            with self._lock:
                if self._coming.get(path) is wanted:
                    del self._coming[path]
            raise

    def _following(self, part: Part) -> Iterator[Part]:
        layout = part.layout
        if layout is None or layout.most_file_bytes > _MOST_AHEAD_BYTES:
            return
        for index in range(part.index + 1, min(part.index + 1 + _AHEAD, layout.chunks)):
            key = layout.chunk_key(index)
            yield Part(key, self.root.files[key], layout, index)

    def _ask(self, part: Part) -> Future[np.ndarray]:
        with self._lock:
            known = self._coming.get(part.path)
            if known is not None and not (known.done() and known.exception() is not None):
                self._coming.move_to_end(part.path)
                return known
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_WORKERS, "alberta-data address")
            self._coming[part.path] = future = self._pool.submit(self._get, part)
            self._let_go()
            return future

    def _let_go(self) -> None:
        """Forget the files used longest ago where there are too many in memory."""
        held = sum(self.root.files[path].size for path in self._coming)
        while held > _MOST_HELD_BYTES and len(self._coming) > 2 * (1 + _AHEAD):
            path, _ = self._coming.popitem(last=False)
            held -= self.root.files[path].size

    def _get(self, part: Part) -> np.ndarray:
        kept = self._cache.get(self.root.id, part) if self._cache is not None else None
        if kept is not None:
            return kept
        data = self.retrying(lambda: self._download(part))
        if self._cache is not None:
            self._cache.put(self.root.id, part, data)
        return data

    def _download(self, part: Part) -> np.ndarray:
        data, done = np.empty(part.record.size, np.uint8), 0
        with closing(self.open(part.path)) as answer:
            while done < len(data):
                done += answer.readinto(data[done:].data)
            answer.readinto(memoryview(bytearray(1)))
        check_part(self.root, part, data)
        return data


class _Sized:
    """A file as it comes, of exactly the size that the root says: a page with an apology has another."""

    def __init__(self, answer: Any, name: str, part: Part):
        self._answer, self._name, self._part, self._got = answer, name, part, 0
        if answer.size is not None and answer.size != part.record.size:
            answer.close()
            raise self._wrong(str(answer.size))

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`, and return how much; 0 at the end.

        Raises:
            AddressError: the network failed, or the file has another size.
        """
        got: int = self._answer.readinto(buffer)
        self._got += got
        if self._got > self._part.record.size:
            raise self._wrong(f"more than {self._part.record.size}")
        if got == 0 and self._got < self._part.record.size and len(buffer):
            raise self._wrong(str(self._got))
        return got

    def close(self) -> None:
        """Let go of it."""
        self._answer.close()

    def _wrong(self, found: str) -> AddressError:
        kind = self._answer.kind
        kind = f" of {kind}" if re.fullmatch(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}", kind) else ""
        where = f"{self._name}/{self._part.path}"
        said = f"answered 200 with {found} bytes{kind}, expected {self._part.record.size}; try again later"
        return AddressError(f"{where} {said}", status=200)


def open_address(url: str, **settings: Any) -> Source:
    """Return the source of a dataset at an address; a `file://` one is a folder here.

    Args:
        url: the address.
        settings: see `AddressSource`; `cache_dir` is by default a folder in this user's cache.
    """
    path = local_path(url)
    if path is not None:
        return FolderSource(path)
    settings.setdefault("cache_dir", cache_folder("addresses"))
    return AddressSource(url, **settings)


def _all(answer: Any, most: int) -> bytes:
    data, piece = bytearray(), memoryview(bytearray(2**18))
    while len(data) < most and (got := answer.readinto(piece[: most - len(data)])):
        data += piece[:got]
    return bytes(data)


__all__ = [
    "SCHEMES",
    "AddressError",
    "AddressSource",
    "check_address",
    "local_path",
    "open_address",
    "retrying",
    "shown",
    "transport",
]
