"""A clock that stands while this process is stopped.

Slurm suspends a job with all of its steps, the batch step included: SIGSTOP, or the freezer of
its cgroup (scontrol(1), suspend; slurm.conf(5), PreemptMode=SUSPEND,GANG). Nobody gives a sign of
life meanwhile, and by any other clock that is a hang once the job goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TICK_S = 1.0
# A busy machine lets a process wait; shorter stops than this do no harm.
STOPPED_S = 5.0


@contextmanager
def awake_clock(monotonic: Callable[[], float]) -> Iterator[Callable[[], float]]:
    """Give a clock like `monotonic` that leaves out when the process was stopped."""
    clock, ended = AwakeClock(monotonic), threading.Event()

    def tick() -> None:
        while not ended.wait(TICK_S):
            clock.now()

    # A thread, since reading files and asking Slurm may take as long as a stop.
    threading.Thread(target=tick, daemon=True).start()
    try:
        yield clock.now
    finally:
        ended.set()


class AwakeClock:
    """Seconds in which this process could run, where it is read every second."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen = monotonic()
        self._stopped_s = 0.0
        self._lock = threading.Lock()

    def now(self) -> float:
        """The time, without what has been left out so far."""
        with self._lock:
            read = self._monotonic()
            if (passed := read - self._seen) > STOPPED_S:
                self._stopped_s += passed
            self._seen = read
            return read - self._stopped_s
