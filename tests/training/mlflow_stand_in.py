"""A stand-in for MLflow's server: the few calls that Lightning's logger makes, kept in memory.

The client that asks it is MLflow's own; a server that is away is one that does not listen.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import Self, override

from tests.training.launched import free_port

RUN = {"run_id": "r1", "run_uuid": "r1", "experiment_id": "7", "status": "RUNNING"}


class MlflowStandIn:
    """Listens on a port of this machine from `start` to `stop`, as often as one likes.

    Attributes:
        metrics: (name, step) of what came, in its order.
        ended: The states that the run was given.
        status: What each call is answered with.
    """

    def __init__(self) -> None:
        self.metrics: list[tuple[str, int]] = []
        self.ended: list[str] = []
        self.status = 200
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        stand_in = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._answer(json.loads(self.rfile.read(length) or b"{}"))

            def _answer(self, body: dict[str, Any]) -> None:
                path = urlsplit(self.path).path
                answer = stand_in.answer(path, body) if stand_in.status == 200 else {}
                text = json.dumps(answer).encode()
                self.send_response(stand_in.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            @override
            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        # Outside of the range from which connections draw theirs: it is bound again later.
        self.port = self.port or free_port()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Answers)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stop listening; the port is kept for the next start."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("experiments/get-by-name"):
            return {"experiment": {"experiment_id": "7", "name": "d", "lifecycle_stage": "active"}}
        if path.endswith("runs/log-batch"):
            self.metrics += [(it["key"], int(it["step"])) for it in body.get("metrics", ())]
            return {}
        if path.endswith("runs/update"):
            self.ended.append(body["status"])
            return {"run_info": RUN}
        return {"run": {"info": RUN, "data": {}}}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
