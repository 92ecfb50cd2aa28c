"""Machines as they are named to ssh: `a`, `user@a`, `a:2222`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Host", "read_hosts", "split_hosts"]

# No word that ssh could take for an option, and none that needs quotes or is no file's name.
_HOST = re.compile(r"(?:([A-Za-z0-9_][^@\s:/]*)@)?([A-Za-z0-9_][\w.-]*)(?::(\d{1,5}))?\Z", re.ASCII)
_PORTS = range(1, 65536)


@dataclass(frozen=True)
class Host:
    """A machine; its name may be an alias in ~/.ssh/config."""

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
        found = _HOST.match(text)
        port = int(found[3]) if found and found[3] else None
        if found is None or (port is not None and port not in _PORTS):
            brackets = ", without brackets" if re.search(r"[\[\]*?]", text) else ""
            raise ValueError(f"{text!r} is no host: write name, user@name or name:port{brackets}")
        hosts.append(Host(found[2], found[1] or "", port))
        if [host.name for host in hosts].count(found[2]) > 1:
            raise ValueError(
                f"{found[2]} is there twice: name each machine once; one that is reached by"
                " another port needs an alias in ~/.ssh/config"
            )
    return hosts
