"""How long this thread was ready to run and had no CPU."""

from __future__ import annotations

import os

_SCHEDSTAT = "/proc/thread-self/schedstat"


class CpuWait:
    """The wait for a CPU from the entry of the block on, of the thread that entered it.

    The second field of /proc/PID/schedstat, in nanoseconds ("time spent waiting on a runqueue":
    Linux, Documentation/scheduler/sched-stats.rst). A kernel without it never waited.
    """

    def __init__(self, path: str = _SCHEDSTAT) -> None:
        self._path = path
        self._file = -1
        self._before = 0.0

    def __enter__(self) -> CpuWait:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # built without CONFIG_SCHED_INFO
            self._file = -1
        self._before = self._total_s()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def seconds(self) -> float:
        """Seconds waited since the entry."""
        return self._total_s() - self._before

    def _total_s(self) -> float:
        if self._file < 0:
            return 0.0
        fields = os.pread(self._file, 64, 0).split()
        return int(fields[1]) / 1e9 if len(fields) >= 2 else 0.0
