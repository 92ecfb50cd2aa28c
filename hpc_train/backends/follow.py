"""Staying with one run: its status again and again, with as few questions to Slurm as will do."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

from hpc_train.backends.observe import SlurmAnswer, ask_slurm, observe, open_jobs
from hpc_train.errors import HpcTrainError, NoSuchRunError, UsageError
from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus
from hpc_train.slurm.jobs import JobView

POLL_S = 0.5
ASK_SLURM_EVERY_S = 10.0  # at most so often, whatever happens
ASK_SLURM_AT_LEAST_EVERY_S = 60.0  # while what it says stays the same


def follow(run: RunDir, timeout_s: float | None) -> Iterator[RunStatus]:
    """The run's status about twice a second, until it has ended.

    What happens is mostly told by the run's own history. Slurm is asked at first; again ten seconds
    later, and then ever more seldom as long as neither its answer nor the history has changed.

    Raises:
        HpcTrainError: when it has not ended after `timeout_s`.
        NoSuchRunError: somebody has removed its folder.
    """
    if not isinstance(timeout_s, (int, float, type(None))):
        raise UsageError(f"timeout_s is {timeout_s!r}", "write seconds, such as 3600, or None")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    last = _LastAnswer()
    job = ""
    while True:
        status = last.status_of(run, time.monotonic())
        if not run.path.is_dir():
            raise _without_a_folder(run, job)
        job = status.job_id if status.backend == "slurm" else job
        yield status
        if status.state.ended:
            return
        if deadline is not None and time.monotonic() > deadline:
            raise HpcTrainError(f"{status.name} is still {status.state.value}")
        time.sleep(POLL_S)


def _without_a_folder(run: RunDir, job: str) -> NoSuchRunError:
    still = f"; scancel {job} ends its job, where it has not ended" if job else ""
    return NoSuchRunError(
        f"the folder of {run.name} ({run.run_id}) is gone, with its checkpoints: {run.path}",
        f"nothing is left to go on with: submit it again{still}",
    )


class _LastAnswer:
    """What Slurm said last of the run's job, and when it is to be asked again."""

    def __init__(self) -> None:
        self._answer = SlurmAnswer()
        self._asked_at = -math.inf
        self._pause_s = ASK_SLURM_EVERY_S
        self._events = self._attempts = 0

    def status_of(self, run: RunDir, now: float) -> RunStatus:
        events = read_events(run.events)
        attempts = attempts_in(events)
        if len(events) != self._events:
            self._events, self._pause_s = len(events), ASK_SLURM_EVERY_S
        if now - self._asked_at >= self._pause_s:
            answer = ask_slurm(open_jobs([events]))
            longer_s = min(2 * self._pause_s, ASK_SLURM_AT_LEAST_EVERY_S)
            self._pause_s = longer_s if answer == self._answer else ASK_SLURM_EVERY_S
            self._answer, self._asked_at = answer, now
        elif len(attempts) > self._attempts and attempts[-1].ended is None:
            # Its supervisor has begun, which Slurm need not be asked about.
            job_id = newest_job_id(events)
            begun = {**self._answer.jobs, job_id: JobView(job_id, "RUNNING")}
            self._answer = replace(self._answer, jobs=begun)
        self._attempts = len(attempts)
        (status,) = observe([run], time.time(), answer=self._answer, histories=[events])
        return status
