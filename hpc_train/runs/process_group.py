"""Signals for what an ended process has left in its group."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def signal_group(leader: int, number: signal.Signals, *, is_reaped: bool) -> None:
    """Signal the group of a child that leads it; one that is gone is no error.

    Nobody is given a number that a group with members has (POSIX, Base Definitions, "Process ID
    Reuse"): where somebody has the number of a child that was reaped, the group is gone, and who
    has the number now is a stranger. Linux gives 32,768 numbers by default, threads among them.

    Args:
        leader: The child's process id.
        is_reaped: Whether its exit status has been read.
    """
    if is_reaped and Path(f"/proc/{leader}").exists():
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
