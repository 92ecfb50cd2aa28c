"""The coordinator's ear: one thread, many connections, nobody can make it wait.

Strangers, floods and garbage cost a bounded amount of memory and are told afterwards; a member that
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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hpc_train.network.inventory import NodeInventory
from hpc_train.network.trial import Lost
from hpc_train.network.wire import MAX_MESSAGE, Frames, WireError, pack, proof, same

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Hub", "Member"]

_GREETING_S = 2.0
_PING_S = 0.5
_MAX_KINDS = 50
_FLOOD = 20
_MAX_OUTBOX = 1 << 20


@dataclass
class Member:
    """One connection; a node once it has said hello.

    Attributes:
        node: Name, empty before the hello.
        inventory: What it saw.
        address: Where its data server can be reached, if it says so itself.
        data_port: Of its data server.
        clock: (offset s, bound s) of the shortest round trip.
        results: Answers to tests by their id.
        counters: Change of its link errors, once told.
    """

    sock: socket.socket
    peer: str
    nonce: str
    since: float
    frames: Frames = field(default_factory=Frames)
    outbox: bytearray = field(default_factory=bytearray)
    is_proven: bool = False
    node: str = ""
    inventory: NodeInventory | None = None
    address: str = ""
    data_port: int = 0
    heard: float = 0.0
    pinged: float = 0.0
    clock: tuple[float, float] | None = None
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: dict[str, int] | None = None


class Hub:
    """Accepts, authenticates, pings and hears the members.

    Args:
        listener: A listening socket; the hub closes it.
        token: The run's.
        nodes: Expected nodes in the order of their ranks.
        silence_s: After so long without a word a member is lost.
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
        self._unproven: list[Member] = []
        self._max_unproven = 64 + 2 * len(nodes)
        self.members: dict[str, Member] = {}
        self.lost: dict[str, Lost] = {}
        self.strangers: Counter[tuple[str, str]] = Counter()
        self._failures: Counter[str] = Counter()

    def close(self) -> None:
        """Close every connection."""
        for member in [*self._unproven, *self.members.values()]:
            member.sock.close()
        self._listener.close()
        self._selector.close()

    def alive(self) -> list[str]:
        """Return the nodes that are here, in the order of their ranks."""
        return [node for node in self._nodes if node in self.members and node not in self.lost]

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
        if node in self.members and node not in self.lost:
            self._queue(self.members[node], message)

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
            member = Member(
                sock=sock, peer=str(address[0]), nonce=os.urandom(16).hex(), since=time.monotonic()
            )
            self._unproven.append(member)
            self._selector.register(sock, selectors.EVENT_READ, member)
            self._queue(member, {"nonce": member.nonce})
            # One that has proved the token and is about to say hello is none of the flood.
            nameless = [waiting for waiting in self._unproven if not waiting.is_proven]
            if len(nameless) > self._max_unproven:
                self._stranger(nameless[0], "too many connections that prove nothing")

    def _is_flooding(self, peer: str) -> bool:
        """Return whether to hang up at once, which costs a tenth of listening.

        One in eight is still heard: one of our own nodes may share the address, and it tries again
        twenty times a second.
        """
        if self._failures[peer] < _FLOOD or random.random() < 1 / 8:
            return False
        self._count(peer, "a flood of connections that prove nothing")
        return True

    def _serve(self, member: Member, events: int) -> None:
        if member.sock.fileno() < 0:
            return  # dropped a moment ago, with its event already in the list
        try:
            if events & selectors.EVENT_WRITE:
                self._flush(member)
            if events & selectors.EVENT_READ:
                self._read(member)
        except WireError as error:
            self._drop(member, str(error), "protocol")
        except OSError as error:
            self._drop(member, f"the connection broke: {error.strerror}", "alive")

    def _read(self, member: Member) -> None:
        try:
            data = member.sock.recv(1 << 20)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError(104, "closed by the other side")
        for message in member.frames.feed(data):
            member.heard = time.monotonic()
            self._message(member, message)

    def _message(self, member: Member, message: dict[str, Any]) -> None:
        if not member.is_proven:
            self._prove(member, message)
        elif not member.node:
            self._hello(member, message)
        else:
            self._from_member(member, message)

    def _prove(self, member: Member, message: dict[str, Any]) -> None:
        theirs = message.get("nonce")
        right = proof(self._token, "client", member.nonce, str(theirs))
        if not isinstance(theirs, str) or not same(message.get("proof"), right):
            raise WireError("it does not hold the run's token")
        member.is_proven = True
        member.frames.limit = MAX_MESSAGE
        self._queue(member, {"proof": proof(self._token, "server", theirs, member.nonce)})

    def _hello(self, member: Member, message: dict[str, Any]) -> None:
        name = self._name(message)
        self._unproven.remove(member)
        try:
            inventory = NodeInventory.from_json(message.get("inventory"))
            port = message.get("data_port")
            if not isinstance(port, int) or not 0 < port < 65536:
                raise ValueError(f"data_port {port!r}")
        except ValueError as error:
            member.node = name
            raise WireError(f"its hello is garbage: {error}") from None
        if name in self.members:
            raise WireError(f"a second connection that says it is {name}")
        member.node = name
        member.inventory = inventory
        member.data_port = port
        member.address = str(message.get("address") or "")
        self.members[name] = member

    def _name(self, message: dict[str, Any]) -> str:
        """Return which expected node this is: by its name, else by its rank."""
        name, rank = message.get("node"), message.get("rank")
        if isinstance(name, str) and name in self._nodes:
            return name
        if isinstance(rank, int) and 0 <= rank < len(self._nodes):
            return self._nodes[rank]
        raise WireError("a hello of an unexpected node")

    def _from_member(self, member: Member, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "pong":
            self._pong(member, message)
        elif kind == "result" and isinstance(message.get("result"), dict):
            member.results[str(message.get("id"))] = message["result"]
        elif kind == "counters" and isinstance(message.get("counters"), dict):
            counters = message["counters"]
            member.counters = {str(k): v for k, v in counters.items() if isinstance(v, int)}
        else:
            raise WireError(f"a message that means nothing: {str(message)[:80]}")

    def _pong(self, member: Member, message: dict[str, Any]) -> None:
        sent, unix = message.get("t"), message.get("unix")
        if not isinstance(sent, float) or not isinstance(unix, float):
            raise WireError("a pong without its times")
        trip = time.monotonic() - sent
        # Its clock was read somewhere inside the round trip: half of it bounds the error.
        sample = (unix - (self._clock() - trip / 2), trip / 2)
        if member.clock is None or sample[1] < member.clock[1]:
            member.clock = sample

    def _queue(self, member: Member, message: dict[str, Any]) -> None:
        member.outbox += pack(message)
        if len(member.outbox) > _MAX_OUTBOX:
            self._drop(member, "it takes no messages", "alive")
            return
        try:
            self._flush(member)
        except OSError as error:
            self._drop(member, f"the connection broke: {error.strerror}", "alive")

    def _flush(self, member: Member) -> None:
        try:
            sent = member.sock.send(member.outbox) if member.outbox else 0
        except BlockingIOError:
            sent = 0
        del member.outbox[:sent]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if member.outbox else 0)
        if self._selector.get_key(member.sock).events != events:
            self._selector.modify(member.sock, events, member)

    def _drop(self, member: Member, why: str, check: str) -> None:
        if not member.is_proven:
            self._stranger(member, why)
            return
        self._forget(member)
        if member in self._unproven:
            self._unproven.remove(member)
        name = member.node
        if not name or self.members.get(name, member) is not member:
            self._count(member.peer, why)
        elif name not in self.lost:
            self.lost[name] = Lost(node=name, check=check, reason=why)

    def _stranger(self, member: Member, why: str) -> None:
        self._unproven.remove(member)
        self._forget(member)
        self._count(member.peer, why)

    def _count(self, peer: str, why: str) -> None:
        key = (peer, why)
        if peer in self._failures or len(self._failures) < _MAX_KINDS:
            self._failures[peer] += 1
        if key in self.strangers or len(self.strangers) < _MAX_KINDS:
            self.strangers[key] += 1

    def _forget(self, member: Member) -> None:
        self._selector.unregister(member.sock)
        member.sock.close()

    def _tick(self) -> None:
        now = time.monotonic()
        for member in [m for m in self._unproven if now - m.since > _GREETING_S + self._silence_s]:
            self._drop(member, "it proved nothing in time", "protocol")
        for node in self.alive():
            member = self.members[node]
            if now - member.heard > self._silence_s:
                self._drop(member, f"not a word for {self._silence_s:g} s", "alive")
            elif now - member.pinged > _PING_S:
                member.pinged = now
                self._queue(member, {"type": "ping", "t": now})
