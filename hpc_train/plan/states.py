"""The words for how things end: exit codes of ranks, outcomes of attempts, states of Slurm jobs.

One home for each: everybody else imports them from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

ALL_FINISHED = "all ranks finished"  # of a training that took all of its steps
GPU_FULL = "ran out of GPU memory"  # of a rank: in the reason of its attempt's end
HOST_FULL = "ran out of host memory"  # of a node, in the same way
KILLED_BY = "was killed by"  # before a signal's name: the error of a rank that it ended
LIMIT_CHANGED = "the job's limit was changed to"  # before it: a reason of an attempt's end
CANCEL_ASKED = "`hpc-train cancel` asked for it"
# In a reason, before the keys that have to be others: `resume` would refuse them.
SUBMIT_AGAIN = "submit again with"
NO_FOLDER = "the working folder"  # before its path, of a job whose node has not that folder
MOVED = "its folder was moved while it ran"  # before both places: an attempt's end
NO_PYTHON = "does not see the Python of this job"  # behind a node's name, before the path


def scancelled(by: str = "") -> str:
    """Who has cancelled a job, where that was not `hpc-train cancel`.

    Args:
        by: The user's name; empty where that is not known, or is the run's own.
    """
    return f"the job was cancelled (scancel{f' by {by}' if by else ''})"


class RankExit(IntEnum):
    """Exit codes of a rank; anything else is the user's.

    75 is sysexits.h's EX_TEMPFAIL ("try again later"), the others follow it.
    """

    FINISHED = 0
    SAVED = 75  # saved at a step boundary, wants to go on
    NETWORK = 76  # the network or a peer failed
    WATCHDOG = 77  # stopped because nothing moved


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


@dataclass(frozen=True)
class Follows:
    """What follows an outcome, whatever the user's policy says.

    Attributes:
        state: The run's end; None where the run may go on.
        reason: Why it ends.
        is_fault: Counts against `requeue.budget`; otherwise a stop from outside, which does not.
    """

    state: RunState | None = None
    reason: str = ""
    is_fault: bool = False


class Outcome(str, Enum):
    """How an attempt ended, and what follows; a row without that is a TypeError at import.

    Who may give each is written at the judges, in `supervisor.outcome`.
    """

    follows: Follows

    def __new__(cls, word: str, follows: Follows | None = None) -> Outcome:
        """Make a member: `word` is what files and messages hold."""
        if follows is None:
            raise TypeError(f"what follows {word!r}?")
        member = str.__new__(cls, word)
        member._value_ = word
        member.follows = follows
        return member

    COMPLETED = "completed", Follows(RunState.COMPLETED, "the training is complete")
    USER_ERROR = (
        "user_error",
        Follows(RunState.FAILED, "an error of the training is not tried again"),
    )
    PREEMPTED = "preempted", Follows()
    TIMEOUT = "timeout", Follows()
    NODE_FAILURE = "node_failure", Follows(is_fault=True)
    NETWORK_FAILURE = "network_failure", Follows(is_fault=True)
    HANG = "hang", Follows(is_fault=True)
    OUT_OF_MEMORY = (
        "out_of_memory",
        Follows(RunState.FAILED, "the same shape would run out of memory again"),
    )
    CANCELLED = "cancelled", Follows(RunState.CANCELLED, "somebody cancelled it")


class Action(str, Enum):
    """What follows an attempt."""

    STOP = "stop"
    REQUEUE = "requeue"  # the same job again: scontrol requeue, or a relaunch on a local run
    RESUBMIT = "resubmit"  # a fresh job for the same run


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


# squeue's short codes, by which people know them.
SLURM_SHORT = {
    "PD": "PENDING",
    "CF": "CONFIGURING",
    "R": "RUNNING",
    "S": "SUSPENDED",
    "CG": "COMPLETING",
    "CD": "COMPLETED",
    "CA": "CANCELLED",
    "TO": "TIMEOUT",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "BF": "BOOT_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PR": "PREEMPTED",
}


def run_state_of_word(word: str) -> RunState:
    """What a person means by a word: ours in any case, or one of Slurm's, the short ones too.

    Raises:
        ValueError: for a word that is neither.
    """
    own = word.strip().lower().replace("-", "_")
    if own in {state.value for state in RunState}:
        return RunState(own)
    typed = own.upper()
    return run_state_of_slurm(SLURM_SHORT.get(typed, typed))


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
