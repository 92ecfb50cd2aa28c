"""Jobs that wait for runs or sweeps to complete (`submit --after`), whichever jobs carry them.

Slurm's `afterok` waits for certain jobs. A requeue keeps a job; where another job carries the run
on, the jobs that wait are told to wait for that one, before the job that they waited for ends.

Whoever waits for several is told of all their jobs at once. A failed job that Slurm has forgotten
(MinJobAge, slurm.conf(5)) it would take for a good one then [seen on 22.05]; so nothing is told
while one of the others has ended like that: the one that is resumed last tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import task_id
from hpc_train.runs.events import Event, EventKind, append_event, is_cancel_asked, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir, entry_at, newest_jobs, sweep_of
from hpc_train.runs.sweep_status import SweepStatus
from hpc_train.slurm.control import set_dependency
from hpc_train.slurm.jobs import jobs_forgotten


class Prior(Protocol):
    """A run, or a sweep, that another one waits for."""

    def status(self) -> RunStatus | SweepStatus:
        """What is known of it now."""


Priors = Prior | Sequence[Prior]

Firsts = tuple[RunDir | SweepDir, ...]


@dataclass(frozen=True)
class Prerequisite:
    """Runs and sweeps that have to be complete before a job begins.

    Attributes:
        jobs: The jobs that carry them now.
        own: The waiting job's own `slurm.dependency`.
    """

    firsts: Firsts
    jobs: tuple[str, ...]
    own: str

    @property
    def options(self) -> list[str]:
        """What sbatch is told; after a failure it waits on, since that run may be resumed."""
        return [f"--dependency={_text(self.jobs, self.own)}", "--kill-on-invalid-dep=no"]

    def note(self, waiting: RunDir | SweepDir, job_id: str) -> None:
        """Note in all histories that `waiting` waits, as job `job_id`.

        Where other jobs carry the runs by now, it is told to wait for these.
        """
        now = time.time()
        for first in self.firsts:
            data = {"run": first.path.name, "folder": str(first.path)}
            append_event(waiting.events, Event(now, EventKind.WAITS_FOR, data))
        for first in self.firsts:
            others = {
                str(it.path): list(carriers(it)) for it in self.firsts if it.path != first.path
            }
            dependent = {"job_id": job_id, "dependency": self.own, "others": others}
            append_event(first.events, Event(now, EventKind.DEPENDENT, dependent))
        newest = _carriers_of(self.firsts)
        if set(newest) - set(self.jobs):
            set_dependency(job_id, _text(newest, self.own))


def wait_for(after: Priors | None, own: str | None, cluster: str) -> Prerequisite | None:
    """What a job has to wait for so that it begins once runs and sweeps are complete.

    Args:
        after: One of them, several or none.
        own: The job's own `slurm.dependency`.
        cluster: Where the job goes: `slurm` or `local`.

    Returns:
        None where all are complete.

    Raises:
        CheckError: when one, or a point of it, has ended without being complete, or is none of
            Slurm's.
    """
    wanted = after if isinstance(after, Sequence) else [after] if after else []
    found = [_unfinished(prior.status(), own, cluster) for prior in wanted]
    # The same one, named twice, is waited for once.
    firsts = tuple({first.path: first for first in found if first is not None}.values())
    jobs = _carriers_of(firsts)
    return Prerequisite(firsts, jobs, own or "") if jobs else None


def _unfinished(
    status: RunStatus | SweepStatus, own: str | None, cluster: str
) -> RunDir | SweepDir | None:
    """What is still to be waited for; None where it is complete."""
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
    if any(map(_is_being_cancelled, missing)):
        word = run_word(first.path)
        resumed = f"hpc-train resume {word}, then this again"
        raise CheckError(
            f"--after {name}: it is being cancelled, so this one would never begin",
            f"once hpc-train status {word} says cancelled: {resumed}",
        )
    if cluster != "slurm" or missing[0].backend != "slurm":
        raise CheckError(
            f"--after {name}: only a job of Slurm can wait for another one of Slurm",
            f"submit this one when hpc-train status {name} says completed",
        )
    if own and "?" in own:  # sbatch(1), --dependency: "?" for any, "," for all, never both
        raise CheckError(f"--after cannot stand beside slurm.dependency {own}", "give one of them")
    return first


def _is_being_cancelled(status: RunStatus) -> bool:
    return is_cancel_asked(read_events(RunDir(Path(status.run_dir)).events))


def _carriers_of(firsts: Firsts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(job for first in firsts for job in carriers(first)))


def carriers(first: RunDir | SweepDir) -> tuple[str, ...]:
    """The jobs that have to end well so that a run or a sweep is complete; none once it is.

    An array stands for its tasks as long as no other job has taken on one of them.
    """
    if isinstance(first, RunDir):
        job = newest_job_id(read_events(first.events))
        return (job,) if job and not first.done.exists() else ()
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
    for event in read_events(first.events):
        if event.kind is EventKind.DEPENDENT:
            _tell(event, first, say)


def _tell(noted: Event, first: RunDir | SweepDir, say: Callable[[str], None]) -> None:
    waiting = str(noted.get("job_id"))
    told: set[str] = set()
    # Two runs or points may move at once: who tells last looks again whether it was all.
    while set(jobs := [*carriers(first), *_others(noted)]) - told:
        try:
            if forgotten := jobs_forgotten(jobs) if len(jobs) > 1 else []:
                # Slurm would drop a job that it has forgotten, whatever came of it.
                say(f"job {waiting} waits for job {', '.join(forgotten[:3])}, too, which has ended")
                return
            set_dependency(waiting, _text(jobs, str(noted.get("dependency", ""))))
        except SlurmError as error:  # it was cancelled, or Slurm is away
            say(f"job {waiting} waits for {first.path.name}, and was not told: {error.message}")
        else:
            say(f"job {waiting} waits for job {', '.join(jobs[:3])} now")
        told = set(jobs)


def _others(noted: Event) -> Iterator[str]:
    """The jobs that carry what a dependent waits for as well.

    Of a run whose folder is gone by now those that carried it at the submission.
    """
    others: Mapping[str, list[str]] = noted.get("others") or {}
    for folder, jobs in others.items():
        other = entry_at(Path(folder))
        yield from carriers(other) if other.path.exists() else jobs


def _text(jobs: Iterable[str], own: str) -> str:
    return ",".join([f"afterok:{':'.join(jobs)}", *([own] if own else [])])
