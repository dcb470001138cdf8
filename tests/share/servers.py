"""Servers on loopback: a folder over HTTP, with the faults that networks have."""

from __future__ import annotations

import contextlib
import http.server
import socket
import struct
import threading
import time
from pathlib import Path


class Faults:
    """What goes wrong, path → kind and how many times (-1 for always); and what was asked for."""

    def __init__(self):
        self.planned: dict[str, list] = {}
        self.asked: list[str] = []
        self.headers: list[dict] = []
        self.redirect = ""
        self._lock = threading.Lock()

    def plan(self, path, kind, times=-1):
        self.planned[path] = [kind, times]

    def next(self, path):
        with self._lock:
            self.asked.append(path)
            planned = self.planned.get(path)
            if planned is None or planned[1] == 0:
                return None
            planned[1] -= 1
            return planned[0]


def _handler(folder: Path, faults: Faults):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *arguments):
            pass

        def do_GET(self):
            path = self.path.partition("?")[0].lstrip("/")
            faults.headers.append(dict(self.headers))
            kind = faults.next(path)
            file = folder / path
            if kind is None and not file.is_file():
                kind = 404
            if kind is not None:
                self.fail(kind, file)
                return
            data, start = file.read_bytes(), 0
            if "Range" in self.headers:
                start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                if start >= len(data):
                    self.answer(416, b"")
                    return
            self.answer(206 if start else 200, data[start:])

        def answer(self, status, body, length=None, kind="application/octet-stream", **headers):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if length != "none":
                self.send_header("Content-Length", str(len(body) if length is None else length))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)
            if length is not None:
                self.close_connection = True

        def fail(self, kind, file):
            data = file.read_bytes() if file.is_file() else b""
            page = b"<html><body>Please log in</body></html>"
            if isinstance(kind, int):
                self.answer(kind, page, kind="text/html", **({"Retry_After": "0"} if kind == 429 else {}))
            elif kind == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.rfile.close()
                self.wfile.close()
                self.connection.close()
                self.close_connection = True
            elif kind == "reset in the body":
                self.answer(200, data[: len(data) // 2], len(data))
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.shutdown(socket.SHUT_RDWR)
            elif kind == "stall":
                self.answer(200, data[:10], len(data))
                self.wfile.flush()
                time.sleep(1.0)
            elif kind == "silent":
                time.sleep(1.0)
                self.close_connection = True
            elif kind == "short":
                self.answer(200, data[: len(data) // 2], len(data))
            elif kind == "short without a length":
                self.answer(200, data[: len(data) // 2], "none")
            elif kind == "short with its own length":
                self.answer(200, data[: len(data) // 2])
            elif kind == "long":
                self.answer(200, data + b"x")
            elif kind == "long without a length":
                self.answer(200, data + b"x", "none")
            elif kind == "empty":
                self.answer(200, b"")
            elif kind == "html":
                self.answer(200, page, kind="text/html")
            elif kind == "html of the right size":
                self.answer(200, (page * (1 + len(data) // len(page)))[: len(data)], kind="text/html")
            elif kind == "flipped":
                self.answer(200, bytes([data[0] ^ 1]) + data[1:])
            elif kind == "gzip":
                self.answer(200, data, Content_Encoding="gzip")
            elif kind == "garbage":
                self.wfile.write(b"\0\1\2 no http at all\r\n\r\n")
                self.close_connection = True
            elif kind == "redirect":
                self.answer(302, b"", Location=faults.redirect or f"/{file.name}")
            elif kind == "loop":
                self.answer(302, b"", Location=self.path)

    return Handler


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that went away, or a connection that a fault closed, is what the tests are about."""


@contextlib.contextmanager
def serving(folder: Path, host: str = "127.0.0.1"):
    """Yield the address of a folder, and its faults."""
    faults = Faults()
    server = _Server((host, 0), _handler(folder, faults))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}", faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
