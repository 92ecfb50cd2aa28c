"""The coordinator's side of the control connections: one thread, and nobody can make it wait.

Strangers, floods and garbage cost a bounded amount of memory and are told afterwards; a node that
goes silent is lost after a few missed pings. Nothing here blocks: every socket is non-blocking and
every loop has a deadline.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.probe_results import lost_node
from hpc_train.preflight.probes.wire import MAX_MESSAGE, Frames, WireError, pack, proof, same

_GREETING_S = 2.0
_PING_S = 0.5
_MAX_KINDS = 50
_FLOOD = 20
_MAX_OUTBOX = 1 << 20


@dataclass(eq=False)
class Connection:
    """One connection; a node once it has said hello."""

    sock: socket.socket
    peer: str
    nonce: str
    since: float
    frames: Frames = field(default_factory=Frames)
    outbox: bytearray = field(default_factory=bytearray)
    is_proven: bool = False
    node: str = ""  # name, empty before the hello
    inventory: NodeInventory = field(init=False)  # what it has, once it has said hello
    address: str = ""  # where its data server can be reached, if it says so itself
    data_port: int = 0  # of its data server
    heard: float = 0.0
    pinged: float = 0.0
    clock: tuple[float, float] | None = None  # (offset s, bound s) of the shortest round trip
    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # answers to tests by their id
    counters: dict[str, int] | None = None  # change of its link errors, once told

    @property
    def is_open(self) -> bool:
        """Whether nobody has closed it."""
        return self.sock.fileno() >= 0


class ControlServer:
    """Accepts, authenticates, pings and hears the connections.

    Args:
        listener: A listening socket; the server closes it.
        token: The run's.
        nodes: Expected nodes in the order of their ranks.
        silence_s: After so long without a word a connection is lost.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        listener: socket.socket,
        token: bytes,
        nodes: tuple[str, ...],
        silence_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._token = token
        self._nodes = nodes
        self._silence_s = silence_s
        self._clock = clock
        self._listener = listener
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._unproven: list[Connection] = []
        self._max_unproven = 64 + 2 * len(nodes)
        self.connections: dict[str, Connection] = {}
        self.lost: dict[str, Finding] = {}
        self.strangers: Counter[tuple[str, str]] = Counter()
        self._failures: Counter[str] = Counter()

    def close(self) -> None:
        """Close every connection."""
        for connection in [*self._unproven, *self.connections.values()]:
            connection.sock.close()
        self._listener.close()
        self._selector.close()

    def alive(self) -> list[str]:
        """Return the nodes that are here, in the order of their ranks."""
        return [node for node in self._nodes if node in self.connections and node not in self.lost]

    def pump(self, until: Callable[[], bool], deadline: float) -> bool:
        """Serve everybody until a condition holds or the deadline (monotonic) passes."""
        while not until():
            now = time.monotonic()
            if now >= deadline:
                return False
            for key, events in self._selector.select(min(0.05, deadline - now)):
                if key.data is None:
                    self._accept()
                else:
                    self._serve(key.data, events)
            self._tick()
        return True

    def send(self, node: str, message: dict[str, Any]) -> None:
        """Send to a node; one that does not take it is lost sooner or later."""
        if node in self.connections and node not in self.lost:
            self._queue(self.connections[node], message)

    def _accept(self) -> None:
        for _ in range(256):
            try:
                sock, address = self._listener.accept()
            except OSError:  # nobody is waiting, or he has gone already
                return
            if self._is_flooding(str(address[0])):
                sock.close()
                continue
            sock.setblocking(False)
            connection = Connection(
                sock=sock, peer=str(address[0]), nonce=os.urandom(16).hex(), since=time.monotonic()
            )
            self._unproven.append(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)
            self._queue(connection, {"nonce": connection.nonce})
            # One that has proved the token and is about to say hello is none of the flood.
            nameless = [waiting for waiting in self._unproven if not waiting.is_proven]
            if len(nameless) > self._max_unproven:
                self._drop(nameless[0], "too many connections that prove nothing", "protocol")

    def _is_flooding(self, peer: str) -> bool:
        """Return whether to hang up at once, which costs a tenth of listening.

        One in eight is still heard: one of our own nodes may share the address, and it tries again
        twenty times a second.
        """
        if self._failures[peer] < _FLOOD or random.random() < 1 / 8:
            return False
        self._count(peer, "a flood of connections that prove nothing")
        return True

    def _serve(self, connection: Connection, events: int) -> None:
        if not connection.is_open:
            return  # dropped a moment ago, with its event already in the list
        try:
            if events & selectors.EVENT_WRITE:
                self._flush(connection)
            if events & selectors.EVENT_READ:
                self._read(connection)
        except WireError as error:
            self._drop(connection, str(error), "protocol")
        except OSError as error:
            self._drop(connection, f"the connection broke: {error.strerror}", "alive")

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(1 << 20)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError(104, "closed by the other side")
        for message in connection.frames.feed(data):
            connection.heard = time.monotonic()
            if not connection.is_proven:
                self._prove(connection, message)
            elif not connection.node:
                self._hello(connection, message)
            else:
                self._from_member(connection, message)

    def _prove(self, connection: Connection, message: dict[str, Any]) -> None:
        theirs = message.get("nonce")
        right = proof(self._token, "client", connection.nonce, str(theirs))
        if not isinstance(theirs, str) or not same(message.get("proof"), right):
            raise WireError("it does not hold the run's token")
        connection.is_proven = True
        connection.frames.limit = MAX_MESSAGE
        self._queue(connection, {"proof": proof(self._token, "server", theirs, connection.nonce)})

    def _hello(self, connection: Connection, message: dict[str, Any]) -> None:
        name = self._name(message)
        self._unproven.remove(connection)
        port = message.get("data_port")
        try:
            connection.inventory = NodeInventory.from_json(message.get("inventory"))
            if not isinstance(port, int) or not 0 < port < 65536:
                raise ValueError(f"data_port {port!r}")
        except ValueError as error:
            connection.node = name
            raise WireError(f"its hello is garbage: {error}") from None
        if name in self.connections:
            raise WireError(f"a second connection that says it is {name}")
        connection.node = name
        connection.data_port = port
        connection.address = str(message.get("address") or "")
        self.connections[name] = connection

    def _name(self, message: dict[str, Any]) -> str:
        """Return which expected node this is: by its name, else by its rank."""
        name, rank = message.get("node"), message.get("rank")
        if isinstance(name, str) and name in self._nodes:
            return name
        if isinstance(rank, int) and 0 <= rank < len(self._nodes):
            return self._nodes[rank]
        raise WireError("a hello of an unexpected node")

    def _from_member(self, connection: Connection, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "pong":
            self._pong(connection, message)
        elif kind == "result" and isinstance(message.get("result"), dict):
            connection.results[str(message.get("id"))] = message["result"]
        elif kind == "counters" and isinstance(message.get("counters"), dict):
            counters = message["counters"]
            connection.counters = {str(k): v for k, v in counters.items() if isinstance(v, int)}
        else:
            raise WireError(f"a message that means nothing: {str(message)[:80]}")

    def _pong(self, connection: Connection, message: dict[str, Any]) -> None:
        sent, unix = message.get("t"), message.get("unix")
        if not isinstance(sent, float) or not isinstance(unix, float):
            raise WireError("a pong without its times")
        trip = time.monotonic() - sent
        # Its clock was read somewhere inside the round trip: half of it bounds the error.
        sample = (unix - (self._clock() - trip / 2), trip / 2)
        if connection.clock is None or sample[1] < connection.clock[1]:
            connection.clock = sample

    def _queue(self, connection: Connection, message: dict[str, Any]) -> None:
        connection.outbox += pack(message)
        if len(connection.outbox) > _MAX_OUTBOX:
            self._drop(connection, "it takes no messages", "alive")
            return
        try:
            self._flush(connection)
        except OSError as error:
            self._drop(connection, f"the connection broke: {error.strerror}", "alive")

    def _flush(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.outbox) if connection.outbox else 0
        except BlockingIOError:
            sent = 0
        del connection.outbox[:sent]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outbox else 0)
        if self._selector.get_key(connection.sock).events != events:
            self._selector.modify(connection.sock, events, connection)

    def _drop(self, connection: Connection, why: str, check: str) -> None:
        self._selector.unregister(connection.sock)
        connection.sock.close()
        if connection in self._unproven:
            self._unproven.remove(connection)
        name = connection.node
        if not name or self.connections.get(name, connection) is not connection:
            self._count(connection.peer, why)
        elif name not in self.lost:
            self.lost[name] = lost_node(name, check, why)

    def _count(self, peer: str, why: str) -> None:
        key = (peer, why)
        if peer in self._failures or len(self._failures) < _MAX_KINDS:
            self._failures[peer] += 1
        if key in self.strangers or len(self.strangers) < _MAX_KINDS:
            self.strangers[key] += 1

    def _tick(self) -> None:
        now = time.monotonic()
        too_long = _GREETING_S + self._silence_s
        for connection in [item for item in self._unproven if now - item.since > too_long]:
            self._drop(connection, "it proved nothing in time", "protocol")
        for node in self.alive():
            connection = self.connections[node]
            # Counted from the question: where this process itself got no CPU, nobody was silent.
            is_owing = connection.heard < connection.pinged
            if is_owing and now - connection.pinged > self._silence_s:
                self._drop(connection, f"not a word for {self._silence_s:g} s", "alive")
            elif not is_owing and now - connection.pinged > _PING_S:
                connection.pinged = now
                self._queue(connection, {"type": "ping", "t": now})
