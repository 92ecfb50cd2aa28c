"""What a line lacks and one before it has told.

Sources: torch/csrc/distributed/c10d/socket.cpp; Open MPI's and PRRTE's help-oob-tcp.txt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_ERRNO = re.compile(r"\((?:errno|system error): \d{1,6}\b")
_UNBOUND = re.compile(
    r"server socket has failed to (?:bind to|listen on) \S{0,60}:(?P<port>\d{1,5})"
    r" (?P<why>\((?:errno|system error): \d{1,6}\b[^)]{0,80}\))"
)
_NO_ADDRESS = re.compile(r"failed to listen on any local network address\.\s*$")
_MAX_FILES = 10_000

_BOX = "unable to complete a TCP connection"
_HOST = re.compile(r"\b(Local|Remote) host: {1,20}(\S{1,200})")
_BOX_LINES = 6


class SocketErrors:
    """Why a socket of torch's store failed, which stands in the line before."""

    def __init__(self) -> None:
        self._errno: dict[str, str] = {}  # by file
        self._unbound: dict[str, str] = {}

    def completed(self, line: str, file: str) -> str:
        """Return a line with what the one before it has told."""
        if found := _UNBOUND.search(line):
            if len(self._unbound) < _MAX_FILES:
                self._unbound[file] = f"port: {found['port']} {found['why']}"
        elif file in self._unbound and _NO_ADDRESS.search(line):
            return f"{line.rstrip()} {self._unbound.pop(file)}"
        if found := _ERRNO.search(line):
            self._errno[file] = found[0]
        elif "any network address" in line and file in self._errno:
            return f"{line.rstrip()} {self._errno.pop(file)}"
        return line


class MpiBoxes:
    """The hosts that Open MPI names below a connection that it could not complete."""

    def __init__(self) -> None:
        self._begun: Evidence | None = None
        self._local = ""

    @property
    def is_open(self) -> bool:
        """Whether lines follow that belong to it."""
        return self._begun is not None

    def take(self, line: str, where: Evidence) -> str:
        """Take a line; returns both hosts where they are told by now."""
        if _BOX in line:
            self._begun, self._local = where, ""
        elif self._begun and self._is_near(where) and (found := _HOST.search(line)):
            if found[1] == "Local":
                self._local = found[2]
            elif self._local:
                self._begun = None
                return f"Open MPI could not connect {self._local} to {found[2]}"
        return ""

    def _is_near(self, where: Evidence) -> bool:
        begun = self._begun
        return bool(begun and begun.file == where.file and where.line - begun.line <= _BOX_LINES)

    def at_end(self) -> list[tuple[str, Evidence]]:
        """Return it without the hosts, where the log does not name them."""
        return [("Open MPI could not connect", self._begun)] if self._begun else []
