"""A process that gets a signal when the one that started it is gone."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Opened here: between fork and exec the loader's own lock may be held for ever.
_LIBC = ctypes.CDLL(None, use_errno=True)


def signal_at_parents_death(number: signal.Signals) -> None:
    """Of this process from now on, over an exec as well (prctl(2), PR_SET_PDEATHSIG)."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
