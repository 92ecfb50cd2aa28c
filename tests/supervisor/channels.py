"""A channel for notices on this machine: an HTTP server for Apprise's json://."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "dr0w-terc3s"[::-1]  # as it is, it would stand in the code that a run keeps


class Channel:
    """What came, and the address, which holds a secret in its user's password and its path."""

    def __init__(self, address: str, port: int) -> None:
        self.url = f"json://me:{SECRET}@{address}:{port}/hook/{SECRET}"
        self.came: list[dict[str, Any]] = []
        self.over = threading.Event()

    @property
    def titles(self) -> list[str]:
        return [str(notice["title"]).removeprefix("hpc-train: ") for notice in self.came]


@contextlib.contextmanager
def channel(
    *, status: int = 200, hangs: bool = False, address: str = "127.0.0.1"
) -> Iterator[Channel]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if hangs:  # a byte now and then, so that no time-out of a socket ends it
                with contextlib.suppress(OSError):
                    while not made.over.wait(0.5):
                        self.wfile.write(b"H")
                        self.wfile.flush()
                return
            made.came.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer((address, 0), Handler)
    made = Channel(address, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
