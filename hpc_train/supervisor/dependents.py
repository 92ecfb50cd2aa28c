"""Jobs that wait for a run or a sweep to complete (`submit --after`), whichever jobs carry it.

Slurm's `afterok` waits for certain jobs. A requeue keeps a job; where another job carries the run
on, the jobs that wait are told to wait for that one, before the job that they waited for ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import task_id
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir, newest_jobs, sweep_of
from hpc_train.runs.sweep_status import SweepStatus
from hpc_train.slurm.control import set_dependency


class Prior(Protocol):
    """A run, or a sweep, that another one waits for."""

    def status(self) -> RunStatus | SweepStatus:
        """What is known of it now."""


@dataclass(frozen=True)
class Prerequisite:
    """A run or a sweep that has to be complete before a job begins.

    Attributes:
        jobs: The jobs that carry it now.
        own: The waiting job's own `slurm.dependency`.
    """

    first: RunDir | SweepDir
    jobs: tuple[str, ...]
    own: str

    @property
    def options(self) -> list[str]:
        """What sbatch is told; after a failure it waits on, since that run may be resumed."""
        return [f"--dependency={_text(self.jobs, self.own)}", "--kill-on-invalid-dep=no"]

    def note(self, waiting: RunDir | SweepDir, job_id: str) -> None:
        """Note in both histories that `waiting` waits, as job `job_id`.

        Where other jobs carry the run by now, it is told to wait for these.
        """
        data = {"run": self.first.path.name}
        append_event(waiting.events, Event(time.time(), EventKind.WAITS_FOR, data))
        data = {"job_id": job_id, "dependency": self.own}
        append_event(self.first.events, Event(time.time(), EventKind.DEPENDENT, data))
        newest = carriers(self.first)
        if set(newest) - set(self.jobs):
            set_dependency(job_id, _text(newest, self.own))


def wait_for(status: RunStatus | SweepStatus, own: str | None, cluster: str) -> Prerequisite | None:
    """What a job has to wait for so that it begins once a run or a sweep is complete.

    Args:
        status: Of that run, or of that sweep.
        own: The job's own `slurm.dependency`.
        cluster: Where the job goes: `slurm` or `local`.

    Returns:
        None where it is complete.

    Raises:
        CheckError: when it, or a point of it, has ended without being complete, or is none of
            Slurm's.
    """
    first: RunDir | SweepDir
    if isinstance(status, SweepStatus):
        name, runs = status.sweep, [point.run for point in status.points]
        first = SweepDir(Path(status.sweep_dir))
    else:
        name, runs, first = status.run, [status], RunDir(Path(status.run_dir))
    missing = [run for run in runs if run.state is not RunState.COMPLETED]
    if not missing:
        return None
    failed = [run for run in missing if run.state.ended]
    if failed:
        who = "it" if failed[0].run == name else f"its point {failed[0].run}"
        others = f"; {len(failed)} of its points did not complete" if failed[1:] else ""
        raise CheckError(
            f"--after {name}: {who} is {failed[0].state.value} ({failed[0].reason}){others}",
            f"go on with it first: hpc-train resume {name if failed[1:] else failed[0].run}",
        )
    if cluster != "slurm" or missing[0].backend != "slurm":
        raise CheckError(
            f"--after {name}: only a job of Slurm can wait for another one of Slurm",
            f"submit this one when hpc-train status {name} says completed",
        )
    if own and "?" in own:  # sbatch(1), --dependency: "?" for any, "," for all, never both
        raise CheckError(f"--after cannot stand beside slurm.dependency {own}", "give one of them")
    jobs = carriers(first)
    return Prerequisite(first, jobs, own or "") if jobs else None


def carriers(first: RunDir | SweepDir) -> tuple[str, ...]:
    """The jobs that have to end well so that a run or a sweep is complete.

    An array stands for its tasks as long as no other job has taken on one of them.
    """
    if isinstance(first, RunDir):
        return (newest_job_id(read_events(first.events)),)
    jobs, arrays = newest_jobs(first)
    left = {k: job for k, job in enumerate(jobs) if not first.point(k).done.exists()}
    names: dict[str, None] = {}  # in the order of the points
    for number, job in left.items():
        array = job.partition("_")[0]
        members = arrays.get(array, ())
        whole = members and all(jobs[k] == task_id(array, k) for k in members)
        names[array if whole and number in members else job] = None
    return tuple(names)


def move_dependents(run: RunDir, say: Callable[[str], None]) -> None:
    """Tell the jobs that wait for `run`, or for its sweep, that another job carries it on now.

    The history of the run names that job already: who notes a dependent later looks there.
    """
    tell_dependents(run, say)
    sweep = sweep_of(run)
    if sweep:
        tell_dependents(sweep, say)


def tell_dependents(first: RunDir | SweepDir, say: Callable[[str], None]) -> None:
    """Let the jobs that wait for `first` wait for the jobs that carry it now."""
    noted = [event for event in read_events(first.events) if event.kind is EventKind.DEPENDENT]
    told: set[str] = set()
    # Two points may move at once: who tells last looks again whether it was all.
    while noted and set(jobs := carriers(first)) - told:
        for event in noted:
            waiting = str(event.get("job_id"))
            try:
                set_dependency(waiting, _text(jobs, str(event.get("dependency", ""))))
            except SlurmError as error:  # it was cancelled, or Slurm is away
                say(f"job {waiting} waits for {first.path.name}, and was not told: {error.message}")
            else:
                say(f"job {waiting} waits for job {', '.join(jobs[:3])} now")
        told = set(jobs)


def _text(jobs: Iterable[str], own: str) -> str:
    return ",".join([f"afterok:{':'.join(jobs)}", *([own] if own else [])])
