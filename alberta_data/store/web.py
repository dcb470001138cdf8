"""Files below an http or https address, by the standard library alone.

A connection is used again; redirects are followed within one scheme, and never to a machine of the local network that
the address itself did not name. User names, passwords and queries are sent and never shown.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import ssl
import threading
from collections import deque
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from alberta_data.errors import ArgumentError, RefusedError, StorageError

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_DRAINED = 2**16


class AddressError(StorageError):
    """A server or the network failed.

    Args:
        message: one line with the address and the status.
        status: what the server answered, where it did.
        wait: seconds that the server asked to wait.
    """

    def __init__(self, message: str, *, status: int | None = None, wait: float = 0.0):
        super().__init__(message)
        self.status, self.wait = status, wait


class Web:
    """The files below an address.

    Args:
        url: `http://` or `https://`, with or without user and password.
        timeout: seconds without a byte after which a server counts as silent.
        any_redirect: follow redirects to another scheme and into the local network too.

    Attributes:
        name: the address for messages: no user, password or query in it.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, any_redirect: bool = False):
        self._url = _split(url)
        self.name = shown(url)
        self._timeout, self._any = timeout, any_redirect
        self._idle: dict[tuple[str, str], deque[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self._starts_local = True  # Known with the first connection.

    def open(self, path: str, start: int = 0) -> Answer:
        """Ask for a file, or for what lies at the address itself where `path` is empty.

        Args:
            path: below the address.
            start: the first byte that is wanted; the answer says where it starts, which may be 0 all the same.

        Raises:
            AddressError: no answer, or one that is not the file.
            RefusedError: a redirect that is not followed.
        """
        url = self._url
        if path:
            url = url._replace(path=f"{url.path.rstrip('/')}/{quote(path)}")
        where = f"{self.name}/{path}" if path else self.name
        for hop in range(_MOST_REDIRECTS + 1):
            connection, answer = self._ask(url, where, start, redirected=hop > 0)
            if answer.status not in _REDIRECTS:
                break
            target = answer.getheader("Location") or ""
            self._drop(connection, url, answer)
            url = self._redirected(url, target, where)
        else:
            raise AddressError(f"{where} redirected more than {_MOST_REDIRECTS} times; check the address")
        wanted = (200, 206) if start else (200,)
        if answer.status not in wanted or answer.getheader("Content-Encoding", "identity") != "identity":
            self._drop(connection, url, answer)
            raise _unwanted(where, answer)
        return Answer(self, connection, url, answer, where, start if answer.status == 206 else 0)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            idle, self._idle = [c for waiting in self._idle.values() for c in waiting], {}
        for connection in idle:
            connection.close()

    def _ask(
        self, url: SplitResult, where: str, start: int, *, redirected: bool
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "alberta-data"}
        if start:
            headers["Range"] = f"bytes={start}-"
        if url.username is not None and _origin(url) == _origin(self._url):
            secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        for fresh in (False, True):
            try:
                connection, used_before = self._connection(url, where, redirected, fresh)
                try:
                    connection.request("GET", target, headers=headers)
                    return connection, connection.getresponse()
                except BaseException:
                    connection.close()
                    raise
            except (http.client.HTTPException, OSError) as err:
                if isinstance(err, StorageError):
                    raise
                # A server may have closed a connection that was idle: that is no failure of this request.
                if not used_before or isinstance(err, TimeoutError):
                    raise failed(where, err, self._timeout) from None
        raise AssertionError("a fresh connection was not used before")

    def _connection(
        self, url: SplitResult, where: str, redirected: bool, fresh: bool
    ) -> tuple[http.client.HTTPConnection, bool]:
        if not fresh:
            with self._lock:
                waiting = self._idle.get(_origin(url))
                if waiting:
                    return waiting.pop(), True
        host, port = url.hostname or "", url.port
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        try:
            connection.connect()
            self._check_peer(connection, where, redirected)
        except (http.client.HTTPException, OSError) as err:
            connection.close()
            raise failed(where, err, self._timeout) from None
        except BaseException:
            connection.close()
            raise
        return connection, False

    def _check_peer(self, connection: http.client.HTTPConnection, where: str, redirected: bool) -> None:
        """Check who answers, not what the name looked like: a name may stand for any machine."""
        local = is_local(connection.sock.getpeername()[0])
        if not redirected:
            self._starts_local = local
        elif local and not self._starts_local and not self._any:
            raise RefusedError(f"{where} must not redirect into the local network, got a redirect that does: refused")

    def _redirected(self, url: SplitResult, target: str, where: str) -> SplitResult:
        try:
            new = _split(urljoin(url.geturl(), target))
        except ArgumentError:
            raise RefusedError(f"{where} must redirect to an http address, got another: refused") from None
        if new.scheme != url.scheme and not self._any:
            raise RefusedError(
                f"{where} must not redirect to another scheme, got {url.scheme} to {new.scheme}: "
                f"give the {new.scheme} address itself"
            )
        return new

    def _give_back(self, connection: http.client.HTTPConnection, url: SplitResult) -> None:
        with self._lock:
            self._idle.setdefault(_origin(url), deque()).append(connection)

    def _drop(self, connection: http.client.HTTPConnection, url: SplitResult, answer: http.client.HTTPResponse) -> None:
        """Use the connection again if what is left of an answer is short, else close it."""
        with suppress(http.client.HTTPException, OSError):
            answer.read(_MOST_DRAINED)
        if answer.isclosed() and not answer.will_close:
            self._give_back(connection, url)
        else:
            answer.close()
            connection.close()


class Answer:
    """A file that a server is sending.

    Attributes:
        start: the byte of the file that it begins with.
        size: the bytes that the server says will come, or None.
        kind: what the server calls it.
    """

    def __init__(
        self,
        web: Web,
        connection: http.client.HTTPConnection,
        url: SplitResult,
        answer: http.client.HTTPResponse,
        where: str,
        start: int,
    ):
        self._web, self._connection, self._url, self._answer, self._where = web, connection, url, answer, where
        self.start = start
        self.size = answer.length
        self.kind = str(answer.getheader("Content-Type") or "").split(";")[0].strip().lower()
        self._got = 0

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`, and return how much; 0 at the end.

        Raises:
            AddressError: the connection broke, stalled, or ended before the size that was told.
        """
        try:
            got = self._answer.readinto(buffer)
        except (http.client.HTTPException, OSError) as err:
            raise failed(self._where, err, self._web._timeout) from None
        self._got += got
        if got == 0 and self.size is not None and self._got < self.size and len(buffer):
            raise AddressError(f"{self._where} sent {self._got} of {self.size} bytes; try again")
        return got

    def close(self) -> None:
        """Let go of it: a connection that was read to the end is used again."""
        if self._answer.isclosed() and not self._answer.will_close:
            self._web._give_back(self._connection, self._url)
        else:
            self._answer.close()
            self._connection.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_local(ip: str) -> bool:
    """Say whether an IP address is of this machine or its network, or of no single public machine."""
    return not ipaddress.ip_address(ip.partition("%")[0]).is_global


def shown(url: str) -> str:
    """Return an address without user, password, query and fragment, and without what a terminal would act on."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    text = f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
    return "".join(c if c.isprintable() else f"%{ord(c):02X}" for c in text)


def failed(where: str, err: BaseException, timeout: float) -> AddressError:
    """Return the one-line error for a request that got no whole answer; nothing that a server said is in it."""
    if isinstance(err, TimeoutError):
        said = f"nothing came for {timeout:g} s"
    elif isinstance(err, ssl.SSLCertVerificationError):
        said = f"its certificate is not valid ({err.verify_message})"
    elif isinstance(err, http.client.HTTPException):
        said = "the answer broke off or is no HTTP"
    else:
        said = (getattr(err, "strerror", None) or type(err).__name__).lower()
    return AddressError(f"reading {where} failed: {said}; check the address and the network, and try again")


def _unwanted(where: str, answer: http.client.HTTPResponse) -> AddressError:
    status = answer.status
    said = http.client.responses.get(status, "unknown status")
    if status in (200, 206):
        said = "a compressed answer" if status == 200 else "a part that was not asked for"
    wait: Any = answer.getheader("Retry-After") or ""
    return AddressError(
        f"{where} answered {status} ({said}); check the address, or try again later",
        status=status,
        wait=min(float(wait), 10.0) if wait.isdecimal() else 0.0,
    )


def _origin(url: SplitResult) -> tuple[str, str]:
    return url.scheme, url.netloc.rpartition("@")[2].lower()


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise ArgumentError("an address must be http://host/path or https://host/path, got another form")
    return parts._replace(path=quote(parts.path, safe="%/~!$&'()*+,;=:@"), fragment="")
