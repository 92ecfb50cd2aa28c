"""The signals of a supervisor: each sets a flag, and the loop that watches looks at it."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field


@dataclass
class SupervisorSignals:
    """Counts what arrived.

    SIGTERM comes from Slurm (the batch step at the end of a grace, at scancel, at a requeue) or
    from `hpc-train cancel`; SIGINT from a Ctrl-C in the foreground. USR1 and USR2 are the ranks'
    business; submitit's own handlers for them are replaced, since they would requeue by guesswork.
    """

    received: dict[int, int] = field(default_factory=dict)
    first_at: float | None = None  # when the first stop came, by time.monotonic

    def install(self) -> None:
        """Replace the handlers of this process, submitit's included."""
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._note)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM came."""
        return bool(self.received.get(signal.SIGTERM))

    @property
    def interrupts(self) -> int:
        """How often somebody pressed Ctrl-C."""
        return self.received.get(signal.SIGINT, 0)

    @property
    def first_s_ago(self) -> float | None:
        """Seconds since the first SIGTERM or Ctrl-C; None where none came."""
        return None if self.first_at is None else time.monotonic() - self.first_at

    def _note(self, number: int, _frame: object) -> None:
        if self.first_at is None and number in (signal.SIGTERM, signal.SIGINT):
            self.first_at = time.monotonic()
        self.received[number] = self.received.get(number, 0) + 1
