"""The job of a script that `hpc-train render` wrote, and that somebody gave to sbatch by hand."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from hpc_train.errors import HpcTrainError, NoSuchRunError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.script import PLAN_IN_SCRIPT
from hpc_train.plan.states import RunState, run_state_of_slurm
from hpc_train.plan.sweep_plan import SweepPlan
from hpc_train.slurm.jobs import JobDetails, job_details
from hpc_train.slurm.pending import (
    Asked,
    explain_pending,
    explain_waiting,
    is_not_before,
    never_starts,
)

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
    trouble, _, way = explain_pending(reason, word).partition(": ")
    meaning = trouble or explain_waiting(reason, Asked(options=dict(plan.slurm.options)))
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
