"""Children that a killed rank has left behind where no step of Slurm's ends them: on one machine.

A forked process goes on without its parent, with the memory that it has. torchrun starts each rank
as the leader of a session and signals only the groups of ranks that are alive (torch's
subprocess_handler.py and api.py, SubprocessContext._close).
"""

from __future__ import annotations

import signal

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.process_group import signal_group
from hpc_train.runs.ranks import read_exits, read_heartbeats
from hpc_train.supervisor.allocation import Allocation


def end_left_children(folder: AttemptDir, allocation: Allocation) -> None:
    """Kill what is left in the groups of ranks that ended without a word, once all have ended.

    A rank that ended by itself has seen to its children: they may be meant to stay.
    """
    if allocation.has_steps:
        return
    told = {it.rank for it in read_exits(folder)}
    for beat in read_heartbeats(folder):
        if beat.rank not in told:
            signal_group(beat.pid, signal.SIGKILL, is_reaped=True)
