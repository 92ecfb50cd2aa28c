"""What the probe of every node does: say hello, answer pings, measure when asked."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpc_train.codec import decode, encode
from hpc_train.preflight.checks.pairs import Measured
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.inventory.sysfs import Reader, read_counters
from hpc_train.preflight.probes.pairtest import DataServer, PairPlan, measure
from hpc_train.preflight.probes.wire import Frames, WireError, pack

_COORDINATOR_SILENCE_S = 5.0


@dataclass(kw_only=True)
class PairWorker:
    """One node's side of its control connection to the coordinator."""

    sock: socket.socket  # A connection on which both sides have proved the token
    frames: Frames  # its buffer
    inventory: NodeInventory  # of this node
    rank: int  # of this probe
    token: bytes  # the run's
    address: str  # where the others reach this node, empty for the chosen interface's
    root: Path  # for the counters at the end
    clock: Callable[[], float]  # seconds since the epoch
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self) -> None:
        """Say hello, and answer until the coordinator says goodbye.

        Raises:
            WireError: It went away or fell silent.
        """
        server = DataServer(self.token)
        try:
            self._send(
                {
                    "type": "hello",
                    "node": self.inventory.node,
                    "rank": self.rank,
                    "address": self.address,
                    "data_port": server.port,
                    "inventory": self.inventory.to_json(),
                }
            )
            while True:
                for message in self._next():
                    if message.get("type") == "bye":
                        return
                    self._answer(message)
        finally:
            server.close()
            self.sock.close()

    def _next(self) -> list[dict[str, Any]]:
        self.sock.settimeout(_COORDINATOR_SILENCE_S)
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            raise WireError(f"the coordinator is silent for {_COORDINATOR_SILENCE_S:g} s") from None
        except OSError as error:
            raise WireError(f"lost the coordinator: {error.strerror}") from None
        if not data:
            raise WireError("the coordinator closed the connection")
        return self.frames.feed(data)

    def _answer(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "ping":
            self._send({"type": "pong", "t": message.get("t"), "unix": float(self.clock())})
        elif kind == "pair":
            # In a thread of its own: a test that hangs must not stop the answers to pings.
            threading.Thread(target=self._test, args=(message,), daemon=True).start()
        elif kind == "finish":
            before, after = self.inventory.counters(), read_counters(Reader(self.root))
            change = {name: after[name] - n for name, n in before.items() if name in after}
            self._send({"type": "counters", "counters": change})

    def _test(self, message: dict[str, Any]) -> None:
        try:
            result = measure(decode(PairPlan, message.get("plan")), self.token)
        except ValueError as error:
            result = Measured(error=str(error))
        # The coordinator has gone: serve() tells it.
        with contextlib.suppress(OSError):
            self._send({"type": "result", "id": message.get("id"), "result": encode(result)})

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self.sock.settimeout(_COORDINATOR_SILENCE_S)
            self.sock.sendall(pack(message))
