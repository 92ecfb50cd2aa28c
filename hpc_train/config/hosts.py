"""Machines as they are named to ssh: `a`, `user@a`, `a:2222`, `[fd00::1]:2222`. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

# No word that ssh could take for an option, and none that needs quotes or is no file's name.
_WHO, _PORT = r"(?:([A-Za-z0-9_][^@\s:/]*)@)?", r"(?::(\d{1,5}))?"
_HOST = re.compile(rf"{_WHO}([A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f.:]+\]){_PORT}\Z", re.ASCII)
_PORTS = range(1, 65536)


@dataclass(frozen=True)
class Host:
    """A machine; its name may be an alias in ~/.ssh/config, or an address."""

    name: str
    user: str = ""
    port: int | None = None

    @property
    def typed(self) -> str:
        """The words behind `ssh` that reach it."""
        who = f"{self.user}@{self.name}" if self.user else self.name
        return f"-p {self.port} {who}" if self.port else who


def split_hosts(text: str) -> list[str]:
    """`a, user@b,c:2222` as the list that the key `hosts` holds."""
    return [part.strip() for part in text.split(",")]


def read_hosts(texts: Sequence[str]) -> list[Host]:
    """Read the key `hosts`.

    Raises:
        ValueError: a text is no host, or two are the same.
    """
    hosts: list[Host] = []
    for text in texts:
        host = _read(text)
        if host is None:
            one = ", one by one" if re.search(r"[\[*?]", text) and "::" not in text else ""
            raise ValueError(
                f"{text!r} is no host: write name, user@name or name:port{one}; an IPv6 address"
                " as [fd00::1] or [fd00::1]:port"
            )
        hosts.append(host)
        if [host.name for host in hosts].count(host.name) > 1:
            raise ValueError(
                f"{host.name} is there twice: name each machine once; one that is reached by"
                " another port needs an alias in ~/.ssh/config"
            )
    return hosts


def _read(text: str) -> Host | None:
    found = _HOST.match(text)
    if found is None:
        return None
    user, name, port = found[1] or "", found[2], int(found[3]) if found[3] else None
    if name.startswith("["):
        try:
            name = str(ipaddress.IPv6Address(name[1:-1]))
        except ValueError:
            return None
    return None if port is not None and port not in _PORTS else Host(name, user, port)


def bracketed(address: str) -> str:
    """An address as it stands in front of a colon and a port (RFC 3986, 3.2.2)."""
    return f"[{address}]" if ":" in address else address


def family_of(address: str) -> socket.AddressFamily:
    """Of a socket to a name or an address; a name is looked up in IPv4."""
    import socket  # every command that reads a config comes by this file

    return socket.AF_INET6 if ":" in address else socket.AF_INET
