"""Jobs that wait for a run to complete (`submit --after`), whichever job carries it.

Slurm's `afterok` waits for one job. A requeue keeps that job; where another job carries the run on,
the jobs that wait are told to wait for that one, before the job that they waited for ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.slurm.control import set_dependency

__all__ = ["Prerequisite", "move_dependents", "wait_for"]


@dataclass(frozen=True)
class Prerequisite:
    """A run that has to be complete before a job begins.

    Attributes:
        job_id: The job that carries it now.
        own: The waiting job's own `slurm.dependency`.
    """

    run: RunDir
    job_id: str
    own: str

    @property
    def options(self) -> list[str]:
        """What sbatch is told; after a failure it waits on, since that run may be resumed."""
        return [f"--dependency={_text(self.job_id, self.own)}", "--kill-on-invalid-dep=no"]

    def note(self, waiting: RunDir | SweepDir, job_id: str) -> None:
        """Note in both histories that `waiting` waits, as job `job_id`.

        Where another job carries the run by now, it is told to wait for that one.
        """
        data = {"run": self.run.run_id}
        append_event(waiting.events, Event(time.time(), EventKind.WAITS_FOR, data))
        data = {"job_id": job_id, "dependency": self.own}
        append_event(self.run.events, Event(time.time(), EventKind.DEPENDENT, data))
        newest = newest_job_id(read_events(self.run.events))
        if newest != self.job_id:
            set_dependency(job_id, _text(newest, self.own))


def wait_for(status: RunStatus, own: str | None, cluster: str) -> Prerequisite | None:
    """What a job has to wait for so that it begins once a run is complete; None if it is.

    Args:
        status: Of that run.
        own: The job's own `slurm.dependency`.
        cluster: Where the job goes: `slurm` or `local`.

    Raises:
        CheckError: when that run has ended without being complete, or is none of Slurm's.
    """
    if status.state is RunState.COMPLETED:
        return None
    if status.state.ended:
        raise CheckError(
            f"--after {status.run}: it is {status.state.value} ({status.reason})",
            f"go on with it first: hpc-train resume {status.run}",
        )
    if cluster != "slurm" or status.backend != "slurm":
        raise CheckError(
            f"--after {status.run}: only a job of Slurm can wait for another one of Slurm",
            f"submit this one when hpc-train status {status.run} says completed",
        )
    if own and "?" in own:  # sbatch(1), --dependency: "?" for any, "," for all, never both
        raise CheckError(f"--after cannot stand beside slurm.dependency {own}", "give one of them")
    return Prerequisite(RunDir(Path(status.run_dir)), status.job_id, own or "")


def move_dependents(run: RunDir, job_id: str, say: Callable[[str], None]) -> None:
    """Let the jobs that wait for `run` wait for job `job_id`, which carries it on now."""
    noted = [event for event in read_events(run.events) if event.kind is EventKind.DEPENDENT]
    for event in noted:
        waiting = str(event.get("job_id"))
        try:
            set_dependency(waiting, _text(job_id, str(event.get("dependency", ""))))
        except SlurmError as error:  # it was cancelled, or Slurm is away
            say(f"job {waiting} waited for this run and could not be told: {error.message}")
        else:
            say(f"job {waiting} waits for job {job_id} now")


def _text(job_id: str, own: str) -> str:
    return ",".join([f"afterok:{job_id}", *([own] if own else [])])
