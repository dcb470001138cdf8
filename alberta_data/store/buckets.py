"""Files below an address that fsspec knows: s3, gs, az, hf. fsspec and what it needs are imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.store.web import AddressError, shown

# scheme → what the extra or the user has to install beside fsspec.
NEEDS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "hf": "huggingface_hub"}


class Bucket:
    """The files below a prefix of an object store.

    Args:
        url: `s3://bucket/prefix`, `gs://`, `az://container/prefix`, `hf://datasets/name/prefix`.
        options: passed to fsspec's file system (an endpoint, a profile); stored nowhere.

    Attributes:
        name: the address for messages: no secret in it.

    Raises:
        UnavailableError: the package that the scheme needs is not installed.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None):
        parts = urlsplit(url)
        if not parts.netloc or parts.username is not None or parts.query:
            raise ArgumentError(
                f"an address must be {parts.scheme}://bucket/path without user or query, got another form; "
                "credentials come from the environment"
            )
        self.scheme, self.name = parts.scheme, shown(url)
        self._base = f"{parts.netloc}{unquote(parts.path)}".rstrip("/")
        self._files = self._file_system(dict(options or {}))

    def open(self, path: str, start: int = 0) -> Held:
        """Ask for a file.

        Raises:
            AddressError: the store did not give it.
        """
        try:
            return Held(self._files.cat_file(self._at(path), start=start or None), start)
        except Exception as err:
            raise self.failed(path, err) from None

    def sizes(self) -> dict[str, int]:
        """Return path → size of every file there is.

        Raises:
            AddressError: the store could not be asked.
        """
        try:
            self._files.invalidate_cache()
            found = self._files.find(self._base, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as err:
            raise self.failed("", err) from None
        skip = len(self._base) + 1
        return {name[skip:]: int(entry["size"]) for name, entry in found.items() if name.startswith(f"{self._base}/")}

    def names(self) -> dict[str, int | None]:
        """Return name → size of what lies directly below the address; None of a folder.

        Raises:
            AddressError: the store could not be asked, or nothing lies there.
        """
        try:
            self._files.invalidate_cache()
            found = self._files.ls(self._base, detail=True)
        except Exception as err:
            raise self.failed("", err) from None
        skip = len(self._base) + 1
        return {
            entry["name"].rstrip("/")[skip:]: None if entry["type"] == "directory" else int(entry["size"] or 0)
            for entry in found
            if entry["name"].startswith(f"{self._base}/")
        }

    def list(self) -> Iterator[str]:
        """Yield the path of every file there is."""
        yield from self.sizes()

    def put(self, path: str, data: bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            AddressError: the store did not take it.
        """
        try:
            self._files.pipe_file(self._at(path), data)
        except Exception as err:
            raise self.failed(path, err) from None

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            AddressError: the store did not.
        """
        try:
            self._files.rm_file(self._at(path))
        except FileNotFoundError:
            return
        except Exception as err:
            raise self.failed(path, err) from None

    def close(self) -> None:
        """Nothing is held."""

    def failed(self, path: str, err: Exception) -> AddressError:
        """Return the one-line error: of what the library says its kind and status alone, for it may hold secrets."""
        response = getattr(err, "response", None)
        metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
        status = metadata.get("HTTPStatusCode") or getattr(err, "status", None) or getattr(err, "code", None)
        if not isinstance(status, int):
            kinds = ((FileNotFoundError, 404), (PermissionError, 403))
            status = next((code for kind, code in kinds if isinstance(err, kind)), None)
        said = f"answered {status}" if status else f"could not be reached ({type(err).__name__})"
        where = f"{self.name}/{path}" if path else self.name
        return AddressError(f"{where} {said}; check the address and the credentials, or try again later", status=status)

    def _at(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base

    def _file_system(self, options: dict[str, Any]) -> Any:
        try:
            import fsspec

            if self.scheme == "s3" and "anon" not in options:
                options["anon"] = _no_credentials()
            return fsspec.filesystem(self.scheme, use_listings_cache=False, **options)
        except ImportError:
            needed = NEEDS[self.scheme]
            extra = ": pip install 'alberta-data[remote]'" if needed == "s3fs" else f": pip install fsspec {needed}"
            raise UnavailableError(
                f"{self.scheme}:// needs fsspec and {needed}, which are not installed{extra}"
            ) from None


class Held:
    """A file that is in memory."""

    def __init__(self, data: bytes, start: int):
        self._data, self._at = memoryview(data), 0
        self.start, self.size = start, len(data)
        self.kind = ""

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`, and return how much; 0 at the end."""
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        """Let go of it."""
        self._data.release()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_credentials() -> bool:
    """Say whether there are none for S3, so that only public buckets can be read."""
    import botocore.session

    return botocore.session.get_session().get_credentials() is None
