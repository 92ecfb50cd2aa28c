"""What is known of a run's job from outside, as the backends hand it to what tells its status."""

from __future__ import annotations

from dataclasses import dataclass

from hpc_train.plan.states import RunState
from hpc_train.runs.forecast import TimeLimit


@dataclass(frozen=True)
class SchedulerView:
    """What is known of the run's job from outside: Slurm's words, or a local process.

    Attributes:
        state: None where nobody knows the job (any more).
        trouble: Why a pending job does not start until something is changed, in the config's words.
        silence: Why Slurm could not tell anything; then the run's own history is all there is.
        waiting: What keeps srun from starting the ranks, while it does.
        standing: Why the ranks of a job that has begun do not train on, while they do not.
        last_words: Of the log of a job that failed or is not known, the last lines.
        meaning: What the reason of a pending job means, for somebody who does not know Slurm's.
        moved: Of a job that will not find its run, what is to be done, a line each.
        resume_with: Of a job that waits in vain, KEY=VALUE with which a resume does not.
        unopened: Why its node could not open the job's log, and what to do, where that is seen.
        untrained: Whether Slurm calls a job completed in which no attempt has begun.
    """

    state: RunState | None
    reason: str = ""
    start: str = ""
    trouble: str = ""
    silence: str = ""
    last_words: tuple[str, ...] = ()
    waiting: str = ""
    standing: str = ""
    limit: TimeLimit | None = None  # of a job that runs, where it is known
    meaning: str = ""
    moved: tuple[str, ...] = ()
    resume_with: str = ""
    untrained: bool = False
    unopened: str = ""
