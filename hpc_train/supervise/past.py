"""An attempt whose supervisor died with its node left no end: its successor writes it."""

from __future__ import annotations

import time

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.slurm.command import is_available, run
from hpc_train.store.checkpoints import newest_step
from hpc_train.store.events import Event, EventKind, append_event, read_events
from hpc_train.store.history import AttemptRecord, attempts_in
from hpc_train.store.layout import RunDir
from hpc_train.store.ranks import read_exits, read_heartbeats
from hpc_train.supervise.narrate import Narrator
from hpc_train.supervise.place import Place

__all__ = ["close_unfinished"]


def close_unfinished(directory: RunDir, place: Place, narrator: Narrator) -> None:
    """Give the last attempt its end, if its supervisor could not, by what Slurm remembers."""
    attempts = attempts_in(read_events(directory.events))
    if not attempts or attempts[-1].outcome is not None:
        return
    last = attempts[-1]
    outcome, reason = _what_happened(directory, place, last)
    folder = directory.attempt(last.attempt)
    saved = newest_step(directory)
    steps = [beat.step for beat in read_heartbeats(folder)]
    append_event(
        directory.events,
        Event(
            time.time(),
            EventKind.ATTEMPT_ENDED,
            {
                "attempt": last.attempt,
                "outcome": outcome.value,
                "reason": reason,
                "last_step": max([last.first_step, saved, *steps]),
                "saved_step": saved,
            },
        ),
    )
    narrator.say(f"attempt {last.attempt} had left no end: {outcome.value}: {reason}")


def _what_happened(directory: RunDir, place: Place, last: AttemptRecord) -> tuple[Outcome, str]:
    state = _slurm_state(last.job_id) if place.is_slurm else ""
    if state == "NODE_FAIL":
        return Outcome.NODE_FAILURE, "Slurm lost a node of the job (NODE_FAIL)"
    records = read_exits(directory.attempt(last.attempt))
    saved = records and all(record.code == RankExit.SAVED for record in records)
    if state == "PREEMPTED" or saved:
        return Outcome.PREEMPTED, "the scheduler took the job away before its supervisor could say"
    if state in ("REQUEUED", "CANCELLED"):
        return Outcome.PREEMPTED, f"the job was put back into the queue ({state})"
    said = f" (Slurm: {state})" if state else ""
    return Outcome.NODE_FAILURE, f"the supervisor was killed{said}"


def _slurm_state(job_id: str) -> str:
    """The state of the job's last finished start: sacct -D keeps a record of each (sacct(1))."""
    if not is_available("sacct"):
        return ""
    said = run(["sacct", "-n", "-P", "-X", "-D", "-j", job_id, "-o", "State"], timeout_s=30)
    states = [line.split()[0] for line in said.stdout.splitlines() if line.strip()]
    ended = [state for state in states if state not in ("RUNNING", "PENDING")]
    return ended[-1] if said.returncode == 0 and ended else ""
