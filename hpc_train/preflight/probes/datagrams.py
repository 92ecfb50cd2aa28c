"""Datagrams between two nodes: does a full frame cross, and how many small ones get lost."""

from __future__ import annotations

import contextlib
import socket
import time

_FRAME_WAITS_S = (0.1, 0.1, 0.2, 0.4, 0.8)  # one a try; the last is for a node that is busy
DATAGRAMS = 400
_BURST = 20
_BURST_WAIT_S = 0.01
_GRACE_S = 0.8
# All datagrams of a test, 0.7 KiB each in the kernel, which doubles the number (socket(7)).
_BUFFER = 1 << 18
# Name, proof and number.
_NUMBERED = 32 + 32 + 4
# linux/in.h: DF set, and the kernel's own idea of the path's MTU ignored.
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_PROBE = 3
IP_UDP_HEADERS = 28


def crosses(sock: socket.socket, there: tuple[str, int], datagram: bytes) -> bool:
    """Return whether a datagram goes there and comes back, in a few tries."""
    for wait_s in _FRAME_WAITS_S:
        sock.settimeout(wait_s)
        # EMSGSIZE (larger than our own interface) and a time-out are answers, too: it did not.
        with contextlib.suppress(OSError):
            sock.sendto(datagram, there)
            if sock.recv(65535) == datagram:
                return True
    return False


def count_lost(sock: socket.socket, there: tuple[str, int], head: bytes, deadline: float) -> int:
    """Return how many of many datagrams did not come back.

    In small bursts; a straggler counts as there as long as it
    comes before the end.
    """
    back: set[bytes] = set()
    for first in range(0, DATAGRAMS, _BURST):
        for number in range(first, first + _BURST):
            # EPERM is how a firewall's drop of our own packet looks like: lost as well.
            with contextlib.suppress(OSError):
                sock.sendto(head + number.to_bytes(4, "big"), there)
        _gather(sock, back, first + _BURST, _BURST_WAIT_S)
        if time.monotonic() > deadline - _GRACE_S:
            raise TimeoutError
    _gather(sock, back, DATAGRAMS, _GRACE_S)
    return DATAGRAMS - len(back)


def _gather(sock: socket.socket, back: set[bytes], enough: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while len(back) < enough and (left := end - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            datagram = sock.recv(65535)
        except OSError:
            return
        if len(datagram) == _NUMBERED:  # no late answer to the full frame
            back.add(datagram[-4:])


def udp_socket(address: str, port: int = 0) -> socket.socket:
    """Return a socket whose packets are never fragmented; raises OSError for a taken port."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Nobody reads while the other side's CPU is taken: what comes meanwhile is not lost.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
    sock.bind((address, port))
    return sock
