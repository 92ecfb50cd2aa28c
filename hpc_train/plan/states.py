"""The words for how things end: exit codes of ranks, outcomes of attempts, states of Slurm jobs.

One home for each: everybody else imports them from here.
"""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = [
    "SLURM_ACTIVE",
    "SLURM_ENDED",
    "SLURM_PENDING",
    "Action",
    "Outcome",
    "RankExit",
    "RunState",
    "run_state_of_slurm",
]


class RankExit(IntEnum):
    """Exit codes of a rank; anything else is the user's.

    75 is sysexits.h's EX_TEMPFAIL ("try again later"), the others follow it.
    """

    FINISHED = 0
    SAVED = 75  # saved at a step boundary, wants to go on
    NETWORK = 76  # the network or a peer failed
    WATCHDOG = 77  # stopped because nothing moved


class Outcome(str, Enum):
    """How an attempt ended."""

    COMPLETED = "completed"
    USER_ERROR = "user_error"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    NODE_FAILURE = "node_failure"
    NETWORK_FAILURE = "network_failure"
    HANG = "hang"
    OUT_OF_MEMORY = "out_of_memory"
    CANCELLED = "cancelled"


class Action(str, Enum):
    """What follows an attempt."""

    STOP = "stop"
    REQUEUE = "requeue"  # the same job again: scontrol requeue, or a relaunch on a local run
    RESUBMIT = "resubmit"  # a fresh job for the same run


class RunState(str, Enum):
    """What a person wants to know of a run at a glance."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"  # the scheduler knows no job and the run has no end: it was killed unseen

    @property
    def ended(self) -> bool:
        """Whether nothing will happen any more by itself."""
        return self not in (RunState.PENDING, RunState.RUNNING)


# squeue(1), "JOB STATE CODES". A requeued job passes REQUEUED/PENDING and is not at its end.
SLURM_PENDING = frozenset(
    {
        "PENDING",
        "CONFIGURING",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "SPECIAL_EXIT",
        "RESV_DEL_HOLD",
    }
)
SLURM_ACTIVE = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"}
)
SLURM_ENDED = {
    "COMPLETED": RunState.COMPLETED,
    "CANCELLED": RunState.CANCELLED,
    "REVOKED": RunState.CANCELLED,
    "TIMEOUT": RunState.TIMED_OUT,
    "DEADLINE": RunState.TIMED_OUT,
    "FAILED": RunState.FAILED,
    "BOOT_FAIL": RunState.FAILED,
    "LAUNCH_FAILED": RunState.FAILED,
    "NODE_FAIL": RunState.FAILED,
    "OUT_OF_MEMORY": RunState.FAILED,
    "PREEMPTED": RunState.FAILED,
}


def run_state_of_slurm(slurm_state: str) -> RunState:
    """Translate a state as squeue or sacct print it (`CANCELLED by 1000` included).

    Raises:
        ValueError: for a word that no version of Slurm prints.
    """
    word = slurm_state.split()[0].rstrip("+") if slurm_state.strip() else ""
    if word in SLURM_PENDING:
        return RunState.PENDING
    if word in SLURM_ACTIVE:
        return RunState.RUNNING
    if word in SLURM_ENDED:
        return SLURM_ENDED[word]
    raise ValueError(f"not a Slurm job state: {slurm_state!r}")
