"""One test between two nodes over TCP: small messages, a full frame, bandwidth both ways.

The dialling side drives and knows everything at the end. The listening side serves whoever proves
the token, one thread a connection, a few at a time. Every wait has a deadline.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from hpc_train.preflight.checks.middle import median_low
from hpc_train.preflight.checks.pairs import Measured
from hpc_train.preflight.probes.cpu_wait import CpuWait
from hpc_train.preflight.probes.datagrams import (
    DATAGRAMS,
    IP_UDP_HEADERS,
    count_lost,
    crosses,
    udp_socket,
)
from hpc_train.preflight.probes.wire import listen, proof, same

_BLOCK = 64 * 1024
_PINGS = 40
_PING_BUDGET_S = 0.3
_MAX_CLIENTS = 16
_LINE = 512
_WINDOW_S = 0.02
_SEND_BUFFER = 512 * 1024
_WAITED = struct.Struct("=d")  # seconds without a CPU
_LAST = struct.Struct("=Bd")  # 0, and the same
# Of the time a transfer took, the share that counts at least, however long the sides had no CPU.
_LEAST_READY = 0.1


@dataclass(frozen=True, kw_only=True)
class PairPlan:
    """What the dialling side is asked to do."""

    id: str  # random name of this test
    address: str  # of the other node
    port: int  # of its data server (TCP and UDP)
    source: str = ""  # own address to dial from
    frame_bytes: int = 0  # size of a full IP packet to try, 0 for none
    seconds: float = 0.2  # for each direction of the bandwidth test
    max_bytes: int = 64 << 20  # for each direction
    deadline_s: float = 4.0  # for all of it


def measure(plan: PairPlan, token: bytes) -> Measured:
    """Run one test as the dialling side; what was measured before an error is kept."""
    started = time.monotonic()
    test = _Test(plan, token, started + plan.deadline_s)
    try:
        test.run()
    except TimeoutError:
        spent = time.monotonic() - started
        return replace(test.seen, error=f"{test.phase}: nothing within {spent:.1f} s")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return replace(test.seen, error=f"{test.phase}: {error}")
    return test.seen


class _Test:
    """The steps of a test; `phase` and `seen` tell how far it came."""

    def __init__(self, plan: PairPlan, token: bytes, deadline: float) -> None:
        self.phase = "connecting"
        self.seen = Measured()
        self._plan = plan
        self._token = token
        self._deadline = deadline

    def run(self) -> None:
        plan = self._plan
        sock = socket.create_connection(
            (plan.address, plan.port),
            timeout=plan.deadline_s,
            source_address=(plan.source, 0) if plan.source else None,
        )
        with sock:
            stream = _Stream(sock, self._deadline)
            stream.line({"id": plan.id, "proof": proof(self._token, "data", plan.id)})
            self.phase = "small messages"
            self.seen = replace(self.seen, latency_us=_pings(stream))
            self.phase = "datagrams"
            self._datagrams()
            if self.seen.frame_ok is not False:  # else the bulk would only hang
                self._bandwidth(stream)
            self.phase = "the other side's counters"
            stream.line({"do": "end"})
            theirs = stream.read_line()
            share, again = _worse(_retransmits(sock), theirs)
            self.seen = replace(self.seen, retransmit_share=share, retransmits=again)

    def _datagrams(self) -> None:
        """Try a full frame, and count what gets lost of many small ones."""
        plan = self._plan
        if ":" in plan.address:
            return
        head = plan.id.encode().ljust(32) + bytes.fromhex(proof(self._token, "frame", plan.id))
        # Not connected: a node with several addresses may answer from another one of them, and
        # the proof inside says better than the address who it is.
        there = (plan.address, plan.port)
        with udp_socket(plan.source) as sock:
            if not crosses(sock, there, head):
                return  # no UDP at all: a firewall, which says nothing about frames
            if plan.frame_bytes > IP_UDP_HEADERS:
                size = min(plan.frame_bytes - IP_UDP_HEADERS, 65507)
                is_across = crosses(sock, there, head.ljust(size, b"."))
                self.seen = replace(self.seen, frame_ok=is_across)
            lost = count_lost(sock, there, head, self._deadline)
        self.seen = replace(self.seen, lost=lost, lost_share=lost / DATAGRAMS)

    def _bandwidth(self, stream: _Stream) -> None:
        self.phase = "bandwidth to it"
        gbps, ready = _send_to(stream, self._plan)
        self.seen = replace(self.seen, gbps_ab=gbps, ready_share_ab=ready)
        self.phase = "bandwidth from it"
        gbps, ready = _receive_from(stream, self._plan)
        self.seen = replace(self.seen, gbps_ba=gbps, ready_share_ba=ready)


class _Stream:
    """A socket with a deadline over everything it does."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.sock = sock
        self.deadline = deadline
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A large buffer would take seconds to drain on a slow link, after the clock has stopped.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)

    def _arm(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)

    def send(self, data: bytes | memoryview) -> None:
        self._arm()
        self.sock.sendall(data)

    def exactly(self, view: memoryview) -> None:
        while view:
            self._arm()
            count = self.sock.recv_into(view)
            if count == 0:
                raise ConnectionError("the connection was closed")
            view = view[count:]

    def line(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.send(body.ljust(_LINE))

    def read_line(self) -> dict[str, Any]:
        raw = bytearray(_LINE)
        self.exactly(memoryview(raw))
        message = json.loads(bytes(raw))
        if not isinstance(message, dict):
            raise ValueError("an answer that is no object")
        return message


def _pings(stream: _Stream) -> float:
    """Return the median round trip of an eight-byte message in microseconds.

    Without the time in which one of the two sides was ready and had no CPU: the answer says how
    long the other one had waited so far.
    """
    stream.line({"do": "echo"})
    times: list[float] = []
    end = time.monotonic() + _PING_BUDGET_S
    answer = memoryview(bytearray(8))
    with CpuWait() as waited:
        before = 0.0
        while len(times) < _PINGS and (not times or time.monotonic() < end):
            started = time.perf_counter()
            stream.send(b"\x01" * 8)
            stream.exactly(answer)
            took = time.perf_counter() - started
            now = waited.seconds() + _WAITED.unpack(answer)[0]
            times.append(max(took - (now - before), 1e-6))
            before = now
    stream.send(b"\x00" * 8)
    return median_low(times) * 1e6


def _echo(stream: _Stream) -> None:
    buffer = memoryview(bytearray(8))
    with CpuWait() as waited:
        while True:
            stream.exactly(buffer)
            if buffer[0] == 0:
                return
            stream.send(_WAITED.pack(waited.seconds()))


def _send_to(stream: _Stream, plan: PairPlan) -> tuple[float, float]:
    stream.line({"do": "sink"})
    _pour(stream, plan.seconds, plan.max_bytes)
    answer = stream.read_line()
    return float(answer["gbps"]), float(answer["ready"])


def _receive_from(stream: _Stream, plan: PairPlan) -> tuple[float, float]:
    stream.line({"do": "source", "seconds": plan.seconds, "max_bytes": plan.max_bytes})
    return _drain(stream)


def _pour(stream: _Stream, seconds: float, max_bytes: int) -> None:
    """Send blocks for a while; the last one is 0 and the seconds this side waited for a CPU."""
    block = memoryview(b"\x01" * _BLOCK)
    with CpuWait() as waited:
        end = time.monotonic() + seconds
        for _ in range(max(1, max_bytes // _BLOCK)):
            stream.send(block)
            if time.monotonic() >= end:
                break
        last = _LAST.pack(0, waited.seconds())
    stream.send(last.ljust(_BLOCK, b"\x00"))


def _drain(stream: _Stream) -> tuple[float, float]:
    """Return the rate in Gbit/s at which the blocks came, and `ready_share`."""
    buffer = memoryview(bytearray(_BLOCK))
    stream.exactly(buffer)
    with CpuWait() as waited:
        started = window = time.perf_counter()
        total = in_window = 0
        rates = []
        while buffer[0] != 0:
            stream.exactly(buffer)
            total += _BLOCK
            in_window += _BLOCK
            now = time.perf_counter()
            if now - window >= _WINDOW_S:
                rates.append(in_window * 8 / (now - window) / 1e9)
                window, in_window = now, 0
        took_s = max(time.perf_counter() - started, 1e-6)
        theirs_s: float = _LAST.unpack_from(buffer)[1]
        waited_s = (waited.seconds(), theirs_s)
        return rate_gbps(total, took_s, waited_s, rates), ready_share(took_s, waited_s)


def ready_share(took_s: float, waited_s: tuple[float, float]) -> float:
    """Return the share of the time in which neither side was ready and had no CPU, 0 to 1.

    The two wait independently.

    Args:
        waited_s: How long each side did.
    """
    mine, theirs = (max(1 - waited / took_s, 0.0) for waited in waited_s)
    return mine * theirs


def rate_gbps(
    count: int, took_s: float, waited_s: tuple[float, float], windows: list[float]
) -> float:
    """Return the rate of a transfer without what the CPUs were busy with.

    The rate of the short window which the best quarter of them reached or passed: a slow link is
    slow in every window, a busy CPU only in some. Or, where that is more, the rate of all bytes
    without the time in which either side was ready and had no CPU.

    Args:
        count: Bytes.
        waited_s: How long each side was ready and had no CPU.
        windows: The rates of short windows in Gbit/s.
    """
    counted_s = took_s * max(ready_share(took_s, waited_s), _LEAST_READY)
    rate = count * 8 / counted_s / 1e9
    return max(rate, sorted(windows)[-(len(windows) // 4) - 1]) if len(windows) >= 4 else rate


def _retransmits(sock: socket.socket) -> dict[str, int]:
    """Return segments sent and sent again, from TCP_INFO (linux/tcp.h: struct tcp_info)."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    again = struct.unpack_from("=I", info, 100)[0]
    sent = struct.unpack_from("=I", info, 156)[0] if len(info) >= 160 else 0
    return {"again": again, "sent": sent}


def _worse(mine: dict[str, int], theirs: dict[str, Any]) -> tuple[float | None, int]:
    shares = [
        (again / sent, again)
        for again, sent in ((mine["again"], mine["sent"]), (theirs["again"], theirs["sent"]))
        if sent > 0
    ]
    share, again = max(shares, default=(None, 0))
    return share, again


class DataServer:
    """The listening side. TCP and UDP share one port number; `close()` ends all its threads."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._tcp, self._udp = _both()
        self.port: int = self._tcp.getsockname()[1]
        self._clients = threading.BoundedSemaphore(_MAX_CLIENTS)
        self._is_closed = False
        for target in (self._accept, self._echo_frames):
            threading.Thread(target=target, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._is_closed = True
        # shutdown() wakes the thread that waits in accept(); close() alone would not.
        for sock in (self._tcp, self._udp):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                sock, _ = self._tcp.accept()
            except OSError:
                return
            if not self._clients.acquire(blocking=False):
                sock.close()
                continue
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        # A broken test is told by the dialling side; here it only ends.
        with sock, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            try:
                stream = _Stream(sock, time.monotonic() + 1.0)
                hello = stream.read_line()
                if same(hello.get("proof"), proof(self._token, "data", str(hello["id"]))):
                    stream.deadline = time.monotonic() + 60.0
                    _obey(stream)
            finally:
                self._clients.release()

    def _echo_frames(self) -> None:
        while True:
            try:
                self._udp.settimeout(0.5)
                datagram, sender = self._udp.recvfrom(65535)
                name = datagram[:32].decode("ascii", "replace").strip()
                right = bytes.fromhex(proof(self._token, "frame", name))
                if same(datagram[32:64].hex(), right.hex()):
                    self._udp.sendto(datagram, sender)
            except OSError:  # half a second without a datagram, or closed
                if self._is_closed:
                    return


def _obey(stream: _Stream) -> None:
    while True:
        order = stream.read_line()
        if order["do"] == "echo":
            _echo(stream)
        elif order["do"] == "sink":
            gbps, ready = _drain(stream)
            stream.line({"gbps": gbps, "ready": ready})
        elif order["do"] == "source":
            _pour(stream, min(float(order["seconds"]), 30.0), int(order["max_bytes"]))
        else:
            stream.line(_retransmits(stream.sock))
            return


def _both() -> tuple[socket.socket, socket.socket]:
    """Return a TCP listener and a UDP socket on one port number."""
    for _ in range(20):
        tcp = listen(backlog=16)
        try:
            return tcp, udp_socket("", tcp.getsockname()[1])
        except OSError:
            tcp.close()
    raise OSError("no port that is free for both TCP and UDP")
