"""The job of a script that `hpc-train render` wrote, and that somebody gave to sbatch by hand."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

from hpc_train.errors import HpcTrainError, NoSuchRunError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.script import PLAN_IN_SCRIPT
from hpc_train.plan.states import RunState, run_state_of_slurm
from hpc_train.plan.sweep_plan import SweepPlan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import find_run, folders
from hpc_train.runs.run_word import run_word
from hpc_train.slurm.jobs import JobDetails, job_details
from hpc_train.slurm.pending import (
    Asked,
    explain_pending,
    explain_waiting,
    is_not_before,
    never_starts,
)
from hpc_train.slurm.reservations import is_reserved, known_reservations

_ASK_S = 5.0
_LOG_NOT_OPENED = "0:53"  # of a batch job that slurmd could not begin, as without its log
_OF_A_RUN = re.compile(r"-m hpc_train\.supervisor --(?:run|sweep)-dir ")  # that of a submission


def refuse_rendered(word: str, job_id: str, script: Path) -> None:
    """Raise for such a job that has no run yet, or none here; else nothing.

    Args:
        word: As it was typed: the job, or the array that it is a task of.
        job_id: Of the job, or of the array's first task that is alive.
        script: As squeue tells it.
    """
    try:
        job = job_details(job_id)
        text = (Path(job.get("WorkDir")) / script).read_text(encoding="utf-8")
        plan = _plan_in(text)
        state = run_state_of_slurm(job.get("JobState"))
    except (SlurmError, OSError, ValueError):
        return  # nobody knows more than that no run answers
    if plan is None:
        return
    what = f"{word} is {script.name}, rendered by hpc-train"
    if state is RunState.PENDING:
        raise _waits(what, word, job, plan)
    if state is RunState.RUNNING:
        place = Path(job.get("WorkDir")) / plan.runs_dir
        where = f"hpc-train status {word} --runs-dir {place}"
        raise NoSuchRunError(
            f"{what}, and has begun in {job.get('WorkDir')}",
            f"its run is there once its supervisor has begun: {where}; scancel {word} ends it",
        )


def refuse_ended(word: str) -> None:
    """Raise for a job of the user's that has ended and is no run here; else nothing.

    As one whose script has refused its arguments, or that was submitted in another folder. Slurm
    forgets it after a while (slurm.conf(5), MinJobAge).

    Args:
        word: The job, an array or a task of one.
    """
    try:
        job = job_details(word, timeout_s=_ASK_S)
        state = run_state_of_slurm(job.get("JobState"))
    except (SlurmError, ValueError):
        return
    array = job.get("ArrayJobId")
    numbers = (job.get("JobId"), array, f"{array}_{job.get('ArrayTaskId')}")
    if word not in numbers or not state.ended or not job.is_of(os.getuid()):
        return
    script = Path(job.get("WorkDir")) / (job.get("Command") or ".")
    plan = None
    with contextlib.suppress(OSError, ValueError):
        plan = _plan_in(script.read_text(encoding="utf-8"))
    how = job.get("JobState")
    if code := job.get("ExitCode").partition(":")[0]:
        how += f" (exit code {code})"
    absent = _absent_folder_of_the_log(job)
    if absent:
        how = f"{job.get('JobState')}, since its log {job.get('StdOut')} could not be opened:"
        how += " there is no such folder"
    ended = f"{word} is {script.name}, rendered by hpc-train, and ended: {how}"
    if plan is None:
        _refuse_gone(word, script, how)
        name = f" ({script})" if job.get("Command") else ""
        ended = f"{word} is a job of Slurm's that hpc-train did not submit{name}; it ended: {how}"
    made = f"mkdir -p {shlex.quote(absent)}, and submit it again: Slurm makes no folder for a log"
    raise NoSuchRunError(ended, made if absent else _where_it_is_told(word, job, plan))


def _refuse_gone(word: str, script: Path, how: str) -> None:
    """Raise for the job of a run whose folder was deleted, or moved, before it ended."""
    names = names_of_script(script)
    if not names:
        return
    name, run_id = names
    folder = next(it for it in script.parents if it.name == run_id)
    if folder.exists():
        return
    what = f"{word} was the run {name} ({run_id}), whose folder"
    if found := run_of_id(run_id):
        shown = f"hpc-train status {run_word(found.path)}"
        raise NoSuchRunError(f"{what} was moved to {found.path}; it ended: {how}", shown)
    raise NoSuchRunError(
        f"{what} is gone ({folder}); it ended: {how}",
        "where the folder was moved: hpc-train status FOLDER; else submit it again",
    )


def run_of_id(run_id: str) -> RunDir | None:
    """Where the run of an id lies now, in any known folder of runs; None where in none."""
    with contextlib.suppress(NoSuchRunError):
        return find_run(run_id, folders(None))
    return None


def names_of_script(script: Path) -> tuple[str, str] | tuple[()]:
    """The name and the id of the run or the sweep in whose folder a job's script lies."""
    for folder in script.parents[:2]:
        if script.parent == RunDir(folder).submitit or script == RunDir(folder).script:
            return folder.parent.name, folder.name
    return ()


def _absent_folder_of_the_log(job: JobDetails) -> str:
    """The folder that lacks, where a job ended since its log could not be opened; else empty."""
    folder = Path(job.get("StdOut")).parent
    is_absent = job.get("ExitCode") == _LOG_NOT_OPENED and not folder.exists()
    return str(folder) if is_absent else ""


def _where_it_is_told(word: str, job: JobDetails, plan: Plan | None) -> str:
    """Its run, which is where it was submitted, or its log."""
    folder, log = Path(job.get("WorkDir")), job.get("StdOut")
    if plan is not None:
        with contextlib.suppress(NoSuchRunError):
            run = find_run(word, [(folder / plan.workdir / plan.runs_dir).resolve()])
            return f"its run is there: hpc-train diagnose {shlex.quote(str(run.path))}"
    if log and Path(log).is_file():
        return f"hpc-train diagnose {shlex.quote(log)} reads what it has written"
    gone = f"what it has written was to be in {log}, which is not there; " if log else ""
    return f"{gone}scontrol show job {word} tells what Slurm knows of it"


def _plan_in(text: str) -> Plan | None:
    """That of the script, or of its sweep's first point; None for a script that is no such one."""
    found = PLAN_IN_SCRIPT.search(text)
    if found is None or _OF_A_RUN.search(text):
        return None
    with contextlib.suppress(HpcTrainError):
        return Plan.from_json(found[0])
    with contextlib.suppress(HpcTrainError):
        return SweepPlan.from_json(found[0]).plan
    return None


def _waits(what: str, word: str, job: JobDetails, plan: Plan) -> NoSuchRunError:
    reason = job.get("Reason")
    asked = Asked(options=dict(plan.slurm.options))
    if is_reserved(reason):
        asked = replace(asked, reservations=known_reservations(), now=time.time())
    trouble, _, way = explain_pending(reason, word, asked).partition(": ")
    meaning = trouble or explain_waiting(reason, asked)
    if is_not_before(reason) and not job.restarts:
        meaning = f"not before {job.get('StartTime').replace('T', ' ')}"
    told = ": ".join(filter(None, (f"{what}, and waits", reason, meaning)))
    ends = f"scancel {word} ends it"
    hint = f"it is a run once it has begun; {ends}"
    if never_starts(reason):
        hint = f"{ends}; then render it anew with what the cluster allows"
    elif way.startswith(("`scontrol release", "ask ")):
        hint = f"{way}; {ends}"
    return NoSuchRunError(told, hint)
