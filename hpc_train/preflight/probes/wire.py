"""Messages between the probes: length-prefixed JSON, bounded, among holders of the run's token.

Both sides prove the token before anything else is said (HMAC over the other's fresh nonce), so that
a stranger on either end learns nothing and is believed nothing. The token never travels.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import struct
import time
from typing import Any

# A node with 16 ports and full GID tables writes about 300 KiB.
MAX_MESSAGE = 4 * 1024 * 1024
# What a stranger may say before it has proved the token.
MAX_GREETING = 512
_LENGTH = struct.Struct(">I")


class WireError(Exception):
    """The other side broke the protocol, went away, or did not answer in time."""


class ClosedError(WireError):
    """Somebody took the connection and hung up."""


class SilenceError(WireError):
    """Somebody took the connection and says nothing."""


def proof(token: bytes, *parts: str) -> str:
    """Return the proof that its maker holds the token, over the parts."""
    return hmac.digest(token, "|".join(parts).encode(), "sha256").hex()


def same(a: Any, b: str) -> bool:
    """Return whether a received proof is right, in constant time."""
    return isinstance(a, str) and hmac.compare_digest(a.encode(), b.encode())


def pack(message: dict[str, Any]) -> bytes:
    """Return the bytes of a message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Takes bytes as they come and gives whole messages; never holds more than the limit.

    Attributes:
        limit: Largest message that is accepted, raised once the other side has proved the token.
    """

    def __init__(self, limit: int = MAX_GREETING) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages completed by `data`.

        Raises:
            WireError: A message is too long, or is no JSON object.
        """
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self.limit:
                raise WireError(f"a message of {length} bytes, at most {self.limit} are allowed")
            if len(self._buffer) < _LENGTH.size + length:
                break
            body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
            del self._buffer[: _LENGTH.size + length]
            messages.append(_object(body))
        return messages


def _object(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise WireError("a message that is no JSON") from None
    if not isinstance(message, dict):
        raise WireError("a message that is no object")
    return message


def receive(sock: socket.socket, frames: Frames, deadline: float) -> dict[str, Any]:
    """Return the next message before a deadline (monotonic), for code that expects exactly one.

    Raises:
        WireError: The deadline passed, or the other side closed or broke the protocol.
    """
    messages: list[dict[str, Any]] = []
    while not messages:
        left = deadline - time.monotonic()
        if left <= 0:
            raise SilenceError("no answer in time")
        sock.settimeout(left)
        try:
            data = sock.recv(65536)
        except TimeoutError:
            raise SilenceError("no answer in time") from None
        except ConnectionResetError:
            raise ClosedError("the connection was reset") from None
        except OSError as error:
            raise WireError(f"{error.strerror}") from None
        if not data:
            raise ClosedError("the connection was closed")
        messages = frames.feed(data)
    if len(messages) > 1:
        raise WireError("more than one message before an answer")
    return messages[0]


def dial(
    address: str, port: int, token: bytes, deadline: float, source: str = ""
) -> tuple[socket.socket, Frames]:
    """Return a connection to the coordinator on which both sides have proved the token.

    Raises:
        WireError: Nobody there, or not a holder of the token.
    """
    left = max(0.05, min(2.0, deadline - time.monotonic()))
    try:
        sock = socket.create_connection(
            (address, port), timeout=left, source_address=(source, 0) if source else None
        )
    except OSError as error:
        raise WireError(f"{address}:{port}: {error.strerror or error}") from None
    try:
        frames = Frames()
        nonce = receive(sock, frames, time.monotonic() + 2.0).get("nonce")
        if not isinstance(nonce, str):
            raise WireError(f"{address}:{port} is no coordinator")
        mine = os.urandom(16).hex()
        sock.sendall(pack({"proof": proof(token, "client", nonce, mine), "nonce": mine}))
        answer = receive(sock, frames, time.monotonic() + 2.0)
        if not same(answer.get("proof"), proof(token, "server", mine, nonce)):
            raise WireError(f"{address}:{port} does not hold the run's token")
    except WireError:
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise WireError(f"{address}:{port}: {error}") from None
    frames.limit = MAX_MESSAGE
    return sock, frames


def listen(backlog: int = 512) -> socket.socket:
    """Return a listening socket on every address, IPv6 included where the host has it.

    Its port is a free one, which the others read from the folder they share.
    """
    if socket.has_dualstack_ipv6():
        # OSError: IPv6 is compiled in and switched off.
        with contextlib.suppress(OSError):
            return socket.create_server(
                ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog
            )
    return socket.create_server(("", 0), backlog=backlog)
