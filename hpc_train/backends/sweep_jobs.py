"""A sweep on Slurm: one array for all points, one query, one scancel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hpc_train.backends.observe import (
    SlurmAnswer,
    ask_again,
    ask_slurm,
    observe,
    open_jobs,
    read_history,
)
from hpc_train.backends.submit import check_submission, leave_out_bad_nodes
from hpc_train.errors import HpcTrainError, RunCancelledError, SlurmError, UsageError
from hpc_train.plan.script import job_options
from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import array_text, task_id
from hpc_train.runs.events import Event, EventKind, append_event, cancels, read_events
from hpc_train.runs.history import job_ids, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir, events_of_point
from hpc_train.runs.sweep_status import PointStatus, SweepStatus
from hpc_train.slurm import control
from hpc_train.slurm.site import chosen_cluster
from hpc_train.supervisor.dependents import tell_dependents


def submit_array(
    sweep: SweepDir,
    points: Sequence[int] | None = None,
    options: Sequence[str] = (),
    unchecked: str | None = None,
) -> str:
    """Submit the sweep's script once, for all points or for some of them.

    Args:
        points: In ascending order; None for all.
        options: More of sbatch's.
        unchecked: What `check_submission` gave, where it was asked.

    Returns:
        The array's job id.

    Raises:
        SlurmError: when Slurm refuses; nothing was written.
        RunCancelledError: somebody has cancelled it meanwhile, and so it is.
    """
    plan = sweep.plan.plan
    unchecked = check_submission(plan) if unchecked is None else unchecked
    some = [] if points is None else [f"--array={array_text(points, sweep.plan.at_most)}"]
    known, wishes = job_ids(read_events(sweep.events)), cancels(sweep.events)
    began, asked = time.time(), dict(plan.slurm.options)

    def submit(left_out: Sequence[str]) -> str:
        wanted = [*job_options(plan, left_out), *some, *options]
        try:
            return control.sbatch(sweep.script, wanted, known=known, asked=asked)
        except SlurmError as error:
            if not control.is_answer_lost(str(error)):
                raise
            # It finds what was taken.
            return control.sbatch(sweep.script, wanted, known=known, asked=asked)

    job_id, left_out = leave_out_bad_nodes(plan, submit)
    where = {"backend": "slurm", "clusters": chosen_cluster(os.environ), "unchecked": unchecked}
    data = {**where, "left_out": list(left_out), "job_id": job_id}
    _tell_submission(sweep, points, began, data)
    if cancels(sweep.events) > wishes:  # before anybody knew which job it meant
        cancel_sweep(sweep, observe_sweep(sweep, time.time()))
        what = f"{sweep.name} ({sweep.sweep_id}) was cancelled while it was being submitted"
        hint = f"hpc-train resume {run_word(sweep.path)} submits it again"
        raise RunCancelledError(f"{what}: job array {job_id} is cancelled", hint)
    return job_id


def _tell_submission(
    sweep: SweepDir, points: Sequence[int] | None, began: float, data: Mapping[str, Any]
) -> None:
    """Write it into the sweep's history, and into those of its points that have begun before."""
    whole = data if points is None else {**data, "points": list(points)}
    append_event(sweep.events, Event(began, EventKind.SUBMITTED, dict(whole)))
    for number in range(len(sweep.plan.points)) if points is None else points:
        events = sweep.point(number).events
        if events.exists():
            told = {**data, "job_id": task_id(str(data["job_id"]), number)}
            append_event(events, Event(began, EventKind.SUBMITTED, told))
            tell_dependents(sweep.point(number), lambda _said: None)
    tell_dependents(sweep, lambda _said: None)


def observe_all(
    entries: Sequence[RunDir | SweepDir],
    now: float,
    answer: SlurmAnswer | None = None,
    ask: Callable[[Collection[str]], SlurmAnswer] = ask_slurm,
) -> list[RunStatus | SweepStatus]:
    """The status of each run and each sweep, by `answer` or one query of Slurm for all.

    What cannot be read, as a sweep of another version, is one line that says so.

    Args:
        entries: The runs and sweeps.
        now: Seconds since the epoch.
        answer: Slurm's newest one.
        ask: What gives it for the jobs that have not ended, where there is none.
    """
    histories = [(entry, *_history(entry)) for entry in entries]
    runs: list[tuple[RunDir, Sequence[Event]]] = []
    for entry, events, trouble in histories:
        if isinstance(entry, SweepDir) and not trouble:
            numbers = range(len(entry.plan.points))
            runs += [(entry.point(k), events_of_point(entry, k, events)) for k in numbers]
        else:
            run = RunDir(entry.path) if isinstance(entry, SweepDir) else entry
            runs.append((run, events))
    directories, events_of = [run for run, _ in runs], [told for _, told in runs]
    answer = ask(open_jobs(events_of)) if answer is None else answer
    statuses = iter(observe(directories, now, answer=answer, histories=events_of))
    seen: list[RunStatus | SweepStatus] = []
    for entry, events, trouble in histories:
        if trouble:
            seen.append(replace(next(statuses), reason=trouble))
        elif isinstance(entry, SweepDir):
            seen.append(_sweep_status(entry, events, statuses))
        else:
            seen.append(next(statuses))
    return seen


def _history(entry: RunDir | SweepDir) -> tuple[list[Event], str]:
    """Its events, and why nothing else is known of it."""
    events: list[Event] = []
    try:
        events = read_history(entry.events)
        if isinstance(entry, SweepDir) and not entry.plan.points:
            return events, f"{entry.document.name} names no points"
    except HpcTrainError as error:
        return events, error.message
    except OSError as error:
        return events, f"{entry.path} cannot be read: {error.strerror}"
    return events, ""


def observe_sweep(sweep: SweepDir, now: float) -> SweepStatus:
    """The status of one sweep, and of its points."""
    events = read_events(sweep.events)
    numbers = range(len(sweep.plan.points))
    histories = [events_of_point(sweep, number, events) for number in numbers]
    points = [sweep.point(number) for number in numbers]
    return _sweep_status(sweep, events, iter(observe(points, now, histories=histories)))


def _sweep_status(
    sweep: SweepDir, events: Sequence[Event], statuses: Iterator[RunStatus]
) -> SweepStatus:
    points = tuple(
        PointStatus(number, point.overrides, next(statuses))
        for number, point in enumerate(sweep.plan.points)
    )
    return SweepStatus(
        sweep=sweep.sweep_id,
        name=sweep.name,
        sweep_dir=str(sweep.path),
        job_id=newest_job_id(events),
        submitted=events[0].time if events else points[0].run.submitted,
        points=points,
    )


def cancel_sweep(sweep: SweepDir, status: SweepStatus) -> list[int]:
    """Record that it is wanted, then end all jobs of the sweep at once.

    Returns:
        The points that had not ended.

    Raises:
        SlurmError: when Slurm refuses.
    """
    still = (RunState.PENDING, RunState.RUNNING)
    alive = [point for point in status.points if point.run.state in still]
    if any(point.run.backend == "local" for point in alive):  # of a bench on this machine
        raise UsageError(
            "it runs on this machine, started by the command that stays", "Ctrl-C there ends it"
        )
    for point in alive:
        if point.run.silence:
            raise SlurmError(
                f"{point.run.silence}: the sweep was not cancelled",
                f"{ask_again(point.run.silence)}: hpc-train cancel {run_word(sweep.path)}",
            )
    if not alive:
        return []
    data = {"by": os.environ.get("USER", str(os.getuid()))}
    event = Event(time.time(), EventKind.CANCEL_REQUESTED, data)
    append_event(sweep.events, event)
    for point in alive:
        events = sweep.point(point.number).events
        if events.exists():
            append_event(events, event)
    jobs = dict.fromkeys(point.run.job_id.partition("_")[0] for point in alive)
    if "" not in jobs:  # else it is being submitted, by a command that cancels it then
        control.cancel(*jobs)
    return [point.number for point in alive]
