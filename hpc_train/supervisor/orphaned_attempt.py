"""What an earlier supervisor of the run left behind: ranks that live on, an attempt with no end."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.states import RankExit, scancelled
from hpc_train.runs.events import Event, EventKind, read_events
from hpc_train.runs.history import AttemptRecord, attempts_in, job_ids
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_open import last_sign, who_cancelled
from hpc_train.runs.ranks import read_beginning, read_exits, read_heartbeats, read_notes
from hpc_train.slurm.command import SACCT, is_available, run
from hpc_train.slurm.control import end_steps
from hpc_train.slurm.jobs import ELSEWHERE, job_details, steps_of
from hpc_train.slurm.nodes import usable_nodes
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt_notes import tell_notes
from hpc_train.supervisor.outcome import AttemptOutcome, OrphanEvidence, judge_orphan
from hpc_train.supervisor.progress import attempt_steps, record_end, tell_beginning
from hpc_train.supervisor.supervisor_log import SupervisorLog

# Ranks whose srun died were told to stop by it: they save and leave, if they are given the time.
LEAVE_S = 30.0
KILLED_S = 20.0


@dataclass(frozen=True)
class _SlurmEnd:
    """How a start of a job ended by Slurm's accounting; empty where nobody can tell.

    Attributes:
        by: Who cancelled it, where that was another user than this one.
    """

    state: str = ""
    by: str = ""


def refuse_if_superseded(directory: RunDir, allocation: Allocation) -> None:
    """A job whose run another job carries on since must not train beside it.

    Slurm may start such a job again: by hand, or since one of its nodes died.

    Raises:
        HpcTrainError: when that other job is alive.
    """
    if not allocation.is_slurm:
        return
    jobs = job_ids(read_events(directory.events))
    if allocation.job_id not in jobs or jobs[-1] == allocation.job_id:
        return
    try:
        alive = job_details(jobs[-1]).is_alive
    except SlurmError:
        alive = False  # Slurm has forgotten it; the run's lock is held where that is wrong
    if alive:
        raise HpcTrainError(
            f"job {jobs[-1]} carries this run on since job {allocation.job_id} ended",
            f"nothing to do here; hpc-train status {directory.run_id} shows it",
        )


def close_unfinished(
    directory: RunDir, allocation: Allocation, environ: Mapping[str, str], log: SupervisorLog
) -> tuple[int, AttemptOutcome] | None:
    """Give the last attempt its end, if its supervisor could not, by what Slurm remembers.

    Returns:
        The attempt's number and its ending; None where nothing was left open.
    """
    events = read_events(directory.events)
    attempts = attempts_in(events)
    if not attempts or attempts[-1].outcome is not None:
        return None
    last = attempts[-1]
    started = [event for event in events if event.kind is EventKind.ATTEMPT_STARTED][-1]
    same_start = allocation.is_slurm and (started.get("job_id"), started.get("restarts")) == (
        allocation.job_id,
        allocation.restarts,
    )
    if same_start:
        _end_leftovers(directory, allocation, last, log)
    if allocation.backend == "ssh":
        # Hosts that lost their supervisor end its ranks within a minute; these are not to wait.
        _tell_to_leave(directory, last)
    beginning = read_beginning(directory.attempt(last.attempt))
    if beginning is not None and not _beginning_told(events, last.attempt):
        tell_beginning(directory, last.attempt, beginning, log.say)
    tell_notes(directory, last.attempt, read_notes(directory.attempt(last.attempt)), log.say)
    steps = attempt_steps(directory, last.attempt, assumed_first=last.first_step)
    alone = same_start or not allocation.is_slurm
    end = _SlurmEnd() if alone else _slurm_end(last.job_id)
    left = OrphanEvidence(
        slurm_state=end.state,
        supervisor_alone=alone,
        gone=_gone(last, environ) if end.state == "NODE_FAIL" else (),
        records=read_exits(directory.attempt(last.attempt)),
        saved_step=steps.newly_saved,
        cancelled=who_cancelled(events) or _by_scancel(end, last, allocation),
    )
    ending = judge_orphan(left)
    ended = last_sign(events, _signs(directory, last), time.time())
    record_end(directory, last.attempt, ending, steps, ended=ended)
    log.say(f"attempt {last.attempt} had left no end: {ending.outcome.value}: {ending.reason}")
    return last.attempt, ending


def _signs(directory: RunDir, last: AttemptRecord) -> list[float]:
    """When its ranks gave signs of life, or ended."""
    folder = directory.attempt(last.attempt)
    return [beat.time for beat in read_heartbeats(folder)] + [it.time for it in read_exits(folder)]


def _beginning_told(events: Sequence[Event], attempt: int) -> bool:
    told = (event for event in events if event.kind is EventKind.RANKS_BEGAN)
    return any(event.get("attempt") == attempt for event in told)


def _end_leftovers(
    directory: RunDir, allocation: Allocation, last: AttemptRecord, log: SupervisorLog
) -> None:
    """Wait until the ranks of a killed supervisor are gone; two sets must not train one run."""
    steps = _wait_for_steps(allocation.job_id, LEAVE_S)
    if not steps:
        return
    log.say(f"ending the ranks that a killed supervisor left ({', '.join(steps)})")
    _tell_to_leave(directory, last)
    steps = _wait_for_steps(allocation.job_id, KILLED_S, signal=end_steps)
    if steps:
        raise HpcTrainError(
            f"ranks of a killed supervisor do not end: step {', '.join(steps)}",
            f"scancel {allocation.job_id}, and then hpc-train resume {directory.run_id}",
        )


def _tell_to_leave(directory: RunDir, last: AttemptRecord) -> None:
    file = directory.attempt(last.attempt).abort
    file.write_text(f"{int(RankExit.NETWORK)}\n", encoding="utf-8")


def _wait_for_steps(
    job: str, longest_s: float, *, signal: Callable[[Sequence[str]], None] | None = None
) -> list[str]:
    deadline = time.monotonic() + longest_s
    wait_s = 0.5
    while True:
        steps = steps_of(job)
        if not steps or time.monotonic() >= deadline:
            return steps
        if signal is not None:
            signal(steps)
        time.sleep(min(wait_s, max(0.0, deadline - time.monotonic())))
        wait_s = min(2 * wait_s, 5.0)


def _gone(last: AttemptRecord, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Those of an attempt's nodes that Slurm no longer has."""
    try:
        usable = usable_nodes(environ.get("SLURM_JOB_PARTITION", ""))
    except SlurmError:
        return ()
    return tuple(node for node in last.nodes if node not in usable)


def _by_scancel(end: _SlurmEnd, last: AttemptRecord, allocation: Allocation) -> str:
    """Who cancelled the attempt's job, in words; a job that starts again was put back instead."""
    is_over = allocation.is_slurm and allocation.job_id != last.job_id
    return scancelled(end.by) if is_over and end.state == "CANCELLED" else ""


def _slurm_end(job_id: str) -> _SlurmEnd:
    """Of the job's last finished start: sacct -D keeps a record of each (sacct(1)).

    The words are `FAILED`, or `CANCELLED by UID`.
    """
    if not is_available("sacct"):
        return _SlurmEnd()
    said = run([*SACCT, "-X", "-D", "-j", job_id, "-o", "State"], timeout_s=30)
    states = [line.split() for line in said.stdout.splitlines() if line.strip()]
    ended = [words for words in states if words[0] not in ("RUNNING", "PENDING", ELSEWHERE)]
    if said.returncode != 0 or not ended:
        return _SlurmEnd()
    return _SlurmEnd(ended[-1][0], _other_user(ended[-1][-1]))


def _other_user(uid: str) -> str:
    """The name of a user that is not this one; empty for this one, and for what is no user."""
    if not uid.isdecimal() or int(uid) == os.getuid():
        return ""
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except KeyError:
        return f"the user {uid}"
