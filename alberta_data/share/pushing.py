"""A dataset sent elsewhere: content first, root last, so that there is a dataset there only when it is whole.

A mark with the id stands there meanwhile: a push that was interrupted goes on, and another dataset's is not mixed in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import AlbertaDataError, ArgumentError, DestinationError, StorageError
from alberta_data.share.fetching import bring
from alberta_data.share.opening import opened
from alberta_data.share.transfer import fill_from, reader_of
from alberta_data.store import canonical, disk
from alberta_data.store.addresses import local_path, retrying
from alberta_data.store.buckets import NEEDS, Bucket
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.parts import Part, check_part, check_spanning, parts
from alberta_data.store.reader import Store
from alberta_data.store.sources import is_address

MARK = ".alberta-data-push"
_WORKERS = 8

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Pushed:
    """What was sent.

    Attributes:
        url: where it lies, without secrets.
        id: its id.
        files: how many files were sent; none where all was there.
        bytes: how many bytes were sent.
    """

    url: str
    id: str
    files: int = 0
    bytes: int = 0


def push(
    dataset: Any,
    url: str | Path,
    *,
    workers: int = _WORKERS,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Pushed:
    """Send a dataset to an address; what is there already is not sent again.

    Every file is checked as it is read: nothing damaged is sent.

    Args:
        dataset: a path, or a dataset that is open.
        url: `s3://bucket/prefix` (gs, az, hf), `file://`, or a path. A web server takes nothing: copy the folder.
        workers: files at once.
        options: passed to fsspec; stored nowhere.
        progress: called with bytes done and all bytes.

    Raises:
        ArgumentError: an address that nothing can be sent to.
        DamagedDatasetError: the dataset is not what was written.
        DestinationError: another dataset, or something else, lies there.
        StorageError: the network or the disk failed; the same call goes on.
        UnavailableError: the package that the scheme needs is not installed.
    """
    text = str(url)
    here = local_path(text) if is_address(text) else Path(text)
    with opened(dataset) as store:
        if here is not None:
            try:
                found = bring(store.source, store.root, here, progress=progress)
            except OSError as err:
                raise disk.failure(err, here) from err
            return Pushed(str(here), found.id, found.files, found.bytes)
        if text.partition(":")[0].lower() not in NEEDS:
            raise ArgumentError(
                f"url must be a folder or begin with one of {', '.join(NEEDS)} to be sent to, got http: "
                "copy the folder to where the server reads it"
            )
        with closing(Bucket(text, options)) as bucket:
            return _Push(store, bucket).run(workers, progress)


class _Push:
    def __init__(self, store: Store, bucket: Bucket):
        self._store, self._root, self._bucket = store, store.root, bucket
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done = 0

    def run(self, workers: int, progress: Progress | None) -> Pushed:
        there = retrying(self._bucket.sizes)
        if ROOT in there:
            found = self._found(there[ROOT])
            if self._is_whole(found, there):
                return self._renewed_root(found)
            if not _same_files(found, self._root):
                raise DestinationError(
                    f"{self._bucket.name} holds the dataset in another form, with files missing: send it elsewhere"
                )
            missing = [part for part in parts(self._root) if there.get(part.path) != part.record.size]
        else:
            self._claim(there)
            missing = [part for part in parts(self._root) if there.get(part.path) != part.record.size]
        check_spanning(self._store.source, self._root)
        self._send(missing, workers, progress)
        self._check_sizes()
        self._put(ROOT, self._store.root_bytes)
        retrying(lambda: self._bucket.remove(MARK))
        return self._pushed(len(missing) + 1, sum(part.record.size for part in missing) + len(self._store.root_bytes))

    def _pushed(self, files: int = 0, size: int = 0) -> Pushed:
        return Pushed(self._bucket.name, self._root.id, files, size)

    def _found(self, size: int) -> Root:
        """Return the root that lies there.

        Raises:
            DestinationError: it is not of this dataset.
        """
        name = self._bucket.name
        data = retrying(lambda: self._get(ROOT, min(size, canonical.MAX_BYTES + 1)))
        try:
            found = Root.from_bytes(data)
        except AlbertaDataError:
            raise DestinationError(
                f"{name} must be free or hold this dataset, got something else: send it elsewhere"
            ) from None
        if found.id != self._root.id:
            raise DestinationError(f"{name} must be free or hold this dataset, got {found.id[:8]}…: send it elsewhere")
        return found

    @staticmethod
    def _is_whole(found: Root, there: Mapping[str, int]) -> bool:
        return all(there.get(path) == record.size for path, record in found.files.items())

    def _renewed_root(self, found: Root) -> Pushed:
        """Leave what is there; where the files are the same and the description is another, send that."""
        data = self._store.root_bytes
        if found.to_bytes() == data or not _same_files(found, self._root):
            return self._pushed()
        self._put(ROOT, data)
        return self._pushed(1, len(data))

    def _claim(self, there: Mapping[str, int]) -> None:
        """Mark the place, or find it marked.

        Raises:
            DestinationError: files of something else lie there.
        """
        name = self._bucket.name
        if MARK in there:
            marked = retrying(lambda: self._get(MARK, 64)).decode("ascii", "replace")
            if marked == self._root.id:
                return
            if set(there) - {MARK}:
                raise DestinationError(f"{name} holds the beginning of another dataset: send it elsewhere")
        elif there:
            raise DestinationError(f"{name} must be free or hold this dataset, got other files: send it elsewhere")
        self._put(MARK, self._root.id.encode("ascii"))

    def _get(self, path: str, size: int) -> bytes:
        with closing(self._bucket.open(path)) as file:
            data = bytearray(size)
            return bytes(data[: file.readinto(memoryview(data))])

    def _put(self, path: str, data: bytes) -> None:
        retrying(lambda: self._bucket.put(path, data))

    def _send(self, missing: list[Part], workers: int, progress: Progress | None) -> None:
        waiting, total = iter(missing), sum(part.record.size for part in missing)

        def work() -> None:
            try:
                for part in self._each(waiting):
                    self._put(part.path, self._read(part).tobytes())
                    with self._lock:
                        self._done += part.record.size
            except BaseException:
                self._stop.set()
                raise

        with ThreadPoolExecutor(workers, "alberta-data push") as pool:
            futures = [pool.submit(work) for _ in range(workers)]
            try:
                for future in futures:
                    while not future.done():
                        wait([future], timeout=0.2)
                        if progress is not None:
                            progress(self._done, total)
                    future.result()
            except BaseException:
                self._stop.set()
                raise

    def _each(self, waiting: Iterator[Part]) -> Iterator[Part]:
        while not self._stop.is_set():
            with self._lock:
                part = next(waiting, None)
            if part is None:
                return
            yield part

    def _read(self, part: Part) -> np.ndarray:
        data = np.empty(part.record.size, np.uint8)
        with closing(reader_of(self._store.source, part)) as reader:
            got = fill_from(reader, data)
        check_part(self._root, part, data[:got])
        return data

    def _check_sizes(self) -> None:
        there = retrying(self._bucket.sizes)
        for path, record in self._root.files.items():
            found = there.get(path)
            if found != record.size:
                raise StorageError(
                    f"{self._bucket.name}/{path} must have {record.size} bytes once sent, got {found}; try again"
                )


def _same_files(one: Root, other: Root) -> bool:
    return one.files == other.files
