"""The signals of a supervisor: each sets a flag, and the loop that watches looks at it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass
class SupervisorSignals:
    """Counts what arrived.

    SIGTERM comes from Slurm (the batch step at the end of a grace, at scancel, at a requeue) or
    from `hpc-train cancel`; SIGINT from a Ctrl-C in the foreground. USR1 and USR2 are the ranks'
    business; submitit's own handlers for them are replaced, since they would requeue by guesswork.
    SIGHUP comes when the terminal of the foreground is closed.
    """

    received: dict[int, int] = field(default_factory=dict)
    first_at: float | None = None  # when the first stop came, by time.monotonic
    terminal: list[int] = field(default_factory=list)  # descriptors that are one

    def install(self, *, at_terminal: bool = False) -> None:
        """Replace the handlers of this process, submitit's included.

        Args:
            at_terminal: Whether a terminal may be closed on it; under nohup that is no matter.
        """
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._note)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)
        if at_terminal and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self.terminal = [number for number in range(3) if os.isatty(number)]
            signal.signal(signal.SIGHUP, self._hang_up)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM came."""
        return bool(self.received.get(signal.SIGTERM))

    @property
    def interrupts(self) -> int:
        """How often somebody pressed Ctrl-C."""
        return self.received.get(signal.SIGINT, 0)

    @property
    def hung_up(self) -> bool:
        """Whether the terminal was closed."""
        return bool(self.received.get(signal.SIGHUP))

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether any of these has come."""
        return bool(self.terminated or self.interrupts or self.hung_up)

    @property
    def first_s_ago(self) -> float | None:
        """Seconds since the first of them; None where none came."""
        return None if self.first_at is None else time.monotonic() - self.first_at

    def _note(self, number: int, _frame: object) -> None:
        if self.first_at is None and number in _STOPS:
            self.first_at = time.monotonic()
        self.received[number] = self.received.get(number, 0) + 1

    def _hang_up(self, number: int, frame: object) -> None:
        """Every later word would be an error (EIO) where the terminal was."""
        self._note(number, frame)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in self.terminal:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
