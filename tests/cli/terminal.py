"""A terminal of its own for a command that stays: what it shows, keys for it, and its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

__all__ = ["Terminal"]

# Moves of the cursor are no text; what is drawn stays.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")
TIMEOUT_S = 60.0


class Terminal:
    """A pseudo-terminal with `hpc-train WORDS` in it."""

    def __init__(
        self, *words: str, columns: int = 80, prefix: tuple[str, ...] = (), **variables: str
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "hpc_train.cli", *words],
            env={**inherited, "TERM": "xterm-256color", **variables},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=own_terminal,
        )
        os.close(theirs)
        self.raw = ""

    @property
    def text(self) -> str:
        """What was drawn so far, without the moves of the cursor."""
        return _ESCAPES.sub("", self.raw)

    def until(self, words: str) -> None:
        """Read until these words were drawn."""
        deadline = time.monotonic() + TIMEOUT_S
        while words not in self.text:
            assert time.monotonic() < deadline, f"{words!r} was never drawn: {self.text[-3000:]}"
            self.read(0.2)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def ends(self) -> int:
        """Its exit code, once it has ended by itself."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it goes on"
            if self._ours >= 0:
                self.read(0.1)
            else:
                time.sleep(0.05)
        if self._ours >= 0:
            self.read(0.1)
        return self.process.returncode

    def close(self) -> None:
        """Take the terminal away, as a lost connection does; the process is left alone."""
        if self._ours >= 0:
            os.close(self._ours)
        self._ours = -1

    def read(self, timeout_s: float) -> None:
        """Take what is drawn by then."""
        ready, _, _ = select.select([self._ours], [], [], timeout_s)
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while ready:
                self.raw += os.read(self._ours, 65536).decode(errors="replace")
                ready, _, _ = select.select([self._ours], [], [], 0)
