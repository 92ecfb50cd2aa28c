"""Ending a run for good: by Slurm, by a signal here, or by the run's own files."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from hpc_train.backends.observe import ask_again, is_submitit, observe
from hpc_train.backends.rendered_job import (
    names_of_script,
    refuse_ended,
    refuse_rendered,
    run_of_id,
)
from hpc_train.errors import HpcTrainError, NoSuchRunError, SlurmError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.copies import copied_from
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import is_held
from hpc_train.runs.ownership import not_yours
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import SESSION, RunStatus
from hpc_train.runs.sweep_dir import is_being_submitted
from hpc_train.slurm.command import is_available
from hpc_train.slurm.control import cancel, is_answer_lost
from hpc_train.slurm.jobs import job_details, jobs_of_scripts, live_scripts


def cancel_one(directories: Sequence[RunDir]) -> tuple[RunStatus, str]:
    """End the one of these runs that has not ended.

    Args:
        directories: What a reference means, the newest first: a name may mean several.

    Returns:
        The run's status before, and what was done, in words.

    Raises:
        UsageError: several of them have not ended.
        HpcTrainError: all of them have, or it is another user's, or a local run belongs to another
            machine.
        SlurmError: Slurm refuses, or does not answer and the job waits.
    """
    known = list(zip(directories, observe(directories, time.time()), strict=True))
    open_ones = [(run, status) for run, status in known if not status.state.ended]
    if len(open_ones) > 1:
        from hpc_train.backends.compare_runs import told_apart  # it reads configs

        apart = told_apart([run for run, _ in open_ones])
        told = ", ".join(
            f"{status.run} ({_shown(status)}{f', {own}' if own else ''})"
            for (_, status), own in zip(open_ones, apart, strict=True)
        )
        hint = "name the one that is meant by its id: hpc-train cancel ID"
        raise UsageError(f"{len(open_ones)} runs of that name have not ended: {told}", hint)
    run, status = (open_ones or known)[0]
    if status.state.ended and status.state is not RunState.LOST:
        what = f"{status.name} ({status.run}) is already {status.state.value}"
        raise HpcTrainError(what, "`hpc-train list --active` shows what has not ended")
    if origin := copied_from(run):
        what = f"{run.path} is a copy of {origin}, and has no job of its own"
        raise HpcTrainError(what, f"hpc-train cancel {shlex.quote(str(origin))}")
    if anothers := not_yours(run.path, f"{status.name} ({status.run}) is a run", "cancel"):
        raise HpcTrainError(anothers)
    is_known = status.job_id or status.attempts
    return status, _cancel(run, status) if is_known else _cancel_unknown(run, status)


def refuse_orphan(word: str, within: Collection[Path] = ()) -> None:
    """Raise for a job that is alive and whose run's folder is gone; else nothing.

    Args:
        word: The job's number, or the run's name, id or folder.
        within: Folders of runs, in one of which that folder was; empty for any.
    """
    if not is_available("squeue"):
        return
    asked = Path(word).name
    for job_id, path in live_scripts().items():
        script = Path(path)
        means = asked in (job_id, job_id.partition("_")[0], *names_of_script(script))
        is_there = not within or any(it in script.parents for it in within)
        if means and is_there and script.is_absolute() and not script.exists():
            names = names_of_script(script)
            if run := run_of_id(names[1]) if names else None:
                what = f"job {job_id} is alive, and its run's folder was moved to {run.path}"
                raise NoSuchRunError(what, f"hpc-train status {run_word(run.path)}")
            raise NoSuchRunError(
                f"job {job_id} is alive, but its run's folder is gone ({script})",
                f"scancel {job_id}",
            )


def refuse_foreign(word: str) -> None:
    """Raise for the number of a job of the user's that is not a run's, or not yet one's.

    Else nothing.
    """
    if not re.fullmatch(r"\d+(_\d+)?", word) or not is_available("squeue"):
        return
    jobs = live_scripts()
    mine = [job for job in jobs if word in (job, job.partition("_")[0])]
    if not mine:
        refuse_ended(word)
        return
    if _is_ours(Path(jobs[mine[0]])):
        refuse_rendered(word, mine[0], Path(jobs[mine[0]]))
        return
    logs = [f"slurm-{job}.out" for job in (word, *mine) if Path(f"slurm-{job}.out").is_file()]
    log = logs[0] if logs else _output_of(mine[0]) or "LOG"
    script = jobs[mine[0]]
    of = f" ({script})" if script != "(null)" else ""  # as of sbatch --wrap
    raise NoSuchRunError(
        f"{word} is a job of Slurm's that hpc-train did not submit{of}",
        f"scancel {word} ends it; hpc-train diagnose {log} reads what it has written",
    )


def _output_of(job_id: str) -> str:
    try:
        return job_details(job_id).get("StdOut")
    except SlurmError:
        return ""


def _is_ours(script: Path) -> bool:
    """Whether it is, or may be, a script of hpc-train's."""
    try:
        text = script.read_bytes()
    except OSError:  # on another node, or unreadable: nobody knows
        return bool(names_of_script(script))
    return re.search(rb"hpc[-_]train|submitit", text) is not None


def _shown(status: RunStatus) -> str:
    silence = f"; {status.silence}" if status.silence else ""
    return f"{status.state.value}, job {status.job_id}{silence}"


def _cancel(directory: RunDir, status: RunStatus) -> str:
    """Record that it is wanted, then end the job; the history tells it from a preemption.

    The ranks of a job that has begun need no Slurm to save and leave: its supervisor reads the
    wish in the history and ends the run. A job that waits can only be cancelled by Slurm.
    """
    if status.silence and status.state is RunState.PENDING:
        raise _not_cancelled(status, status.silence)
    _ask(directory)
    if status.silence:
        return _stop_by_file(directory, status, status.silence)
    if status.backend == "slurm" or _is_slurm_job(directory):
        # Read again: another job may carry the run on since.
        status = replace(status, job_id=newest_job_id(read_events(directory.events)))
        try:
            cancel(status.job_id)
        except SlurmError as error:
            if not is_answer_lost(error.message):
                raise
            if status.state is RunState.PENDING:
                ends = "should it begin, it ends by itself"
                raise _not_cancelled(status, error.message, ends) from error
            return _stop_by_file(directory, status, error.message)
        if status.state is RunState.PENDING:
            stays = "; what it has saved stays" if status.attempts else ""
            return f"cancelling job {status.job_id}, which waited{stays}"
        return f"cancelling job {status.job_id}; its ranks save if there is time"
    attempt = status.attempts[-1] if status.attempts else None
    if attempt is not None and attempt.host != socket.gethostname():
        raise HpcTrainError(
            f"{status.name} runs on {attempt.host}, and this is {socket.gethostname()}",
            f"cancel it there, or: touch {shlex.quote(str(directory.stop))}",
        )
    is_its = attempt is not None and (attempt.ended is None or not status.job_id.isdigit())
    pid = attempt.pid if attempt is not None and is_its else int(status.job_id)
    is_session = status.backend == SESSION and status.state is RunState.RUNNING
    if is_held(directory.lock) or is_submitit(pid) or is_session:
        os.kill(pid, signal.SIGTERM)
    return f"cancelling process {pid}; its ranks save if there is time"


def _ask(directory: RunDir) -> None:
    data = {"by": os.environ.get("USER", str(os.getuid()))}
    append_event(directory.events, Event(time.time(), EventKind.CANCEL_REQUESTED, data))


def _cancel_unknown(directory: RunDir, status: RunStatus) -> str:
    """End a run whose history names no job: it is being submitted, or the history is lost."""
    is_sent = is_being_submitted(directory)
    jobs = sorted(jobs_of_scripts(f"{directory.submitit}/")) if is_available("squeue") else []
    if not (jobs or is_sent):
        raise HpcTrainError(
            f"{status.name} ({status.run}) has no job that is known: {directory.events}"
            f" {'names none' if directory.events.exists() else 'is not there'}",
            f"hpc-train rm {run_word(directory.path)} removes it; `squeue --me` shows your jobs",
        )
    _ask(directory)
    if jobs:
        cancel(*jobs)
        return f"cancelling job {', '.join(jobs)}"
    return "it is being submitted; the command that submits it cancels its job then"


def _stop_by_file(directory: RunDir, status: RunStatus, why: str) -> str:
    directory.stop.touch()
    told = f"{why}: its ranks were told through {directory.stop} to save and leave"
    return (
        f"{told}; should job {status.job_id} be there when Slurm answers: scancel {status.job_id}"
    )


def _not_cancelled(status: RunStatus, why: str, what: str = "it was not cancelled") -> SlurmError:
    return SlurmError(
        f"{why}, and job {status.job_id} has not begun: {what}",
        f"{ask_again(why)}: hpc-train cancel {run_word(status.run_dir)}",
    )


def _is_slurm_job(directory: RunDir) -> bool:
    return any(event.get("cluster") for event in read_events(directory.events))
