"""The part of the probe that every node plays: say hello, answer pings, measure when asked."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

from hpc_train.codec import decode, encode
from hpc_train.preflight.inventory.sysfs import Reader, read_counters
from hpc_train.preflight.probes.pairtest import DataServer, Measured, PairPlan, measure
from hpc_train.preflight.probes.wire import Frames, WireError, pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hpc_train.preflight.inventory.inventory import NodeInventory

__all__ = ["PairWorker"]

_COORDINATOR_SILENCE_S = 5.0


class PairWorker:
    """One node's conversation with the coordinator.

    Args:
        sock: A proven connection.
        frames: Its buffer.
        inventory: What this node saw.
        rank: Of this probe.
        token: The run's.
        address: Where the others reach this node, empty for the chosen interface's.
        root: For the counters at the end.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        sock: socket.socket,
        frames: Frames,
        *,
        inventory: NodeInventory,
        rank: int,
        token: bytes,
        address: str,
        root: Path,
        clock: Callable[[], float],
    ) -> None:
        self._sock = sock
        self._frames = frames
        self._inventory = inventory
        self._token = token
        self._root = root
        self._clock = clock
        self._lock = threading.Lock()
        self._server = DataServer(token)
        self._send(
            {
                "type": "hello",
                "node": inventory.node,
                "rank": rank,
                "address": address,
                "data_port": self._server.port,
                "inventory": inventory.to_json(),
            }
        )

    def serve(self) -> None:
        """Answer until the coordinator says goodbye.

        Raises:
            WireError: It went away or fell silent.
        """
        try:
            while True:
                for message in self._next():
                    if message.get("type") == "bye":
                        return
                    self._answer(message)
        finally:
            self._server.close()
            self._sock.close()

    def _next(self) -> list[dict[str, Any]]:
        self._sock.settimeout(_COORDINATOR_SILENCE_S)
        try:
            data = self._sock.recv(65536)
        except TimeoutError:
            raise WireError(f"the coordinator is silent for {_COORDINATOR_SILENCE_S:g} s") from None
        except OSError as error:
            raise WireError(f"lost the coordinator: {error.strerror}") from None
        if not data:
            raise WireError("the coordinator closed the connection")
        return self._frames.feed(data)

    def _answer(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "ping":
            self._send({"type": "pong", "t": message.get("t"), "unix": float(self._clock())})
        elif kind == "pair":
            # In a thread of its own: a test that hangs must not stop the answers to pings.
            threading.Thread(target=self._test, args=(message,), daemon=True).start()
        elif kind == "finish":
            self._send({"type": "counters", "counters": self._change()})

    def _test(self, message: dict[str, Any]) -> None:
        try:
            plan = decode(PairPlan, message.get("plan"))
        except ValueError as error:
            result = Measured(error=str(error))
        else:
            result = measure(plan, self._token)
        # The coordinator has gone: serve() tells it.
        with contextlib.suppress(OSError):
            self._send({"type": "result", "id": message.get("id"), "result": encode(result)})

    def _change(self) -> dict[str, int]:
        before = self._inventory.counters()
        after = read_counters(Reader(self._root))
        return {name: after[name] - value for name, value in before.items() if name in after}

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._sock.settimeout(_COORDINATOR_SILENCE_S)
            self._sock.sendall(pack(message))
