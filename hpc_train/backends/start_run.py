"""Submitting a run's directory, for the first time or again, and what its history holds of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from hpc_train.backends.submit import (
    check_submission,
    leave_out_bad_nodes,
    submit_local,
    submit_slurm,
)
from hpc_train.plan.plan import Plan
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import remember_root
from hpc_train.slurm.dependencies import check_dependency
from hpc_train.slurm.site import chosen_cluster
from hpc_train.supervisor.dependents import move_dependents


def check_start(plan: Plan, cluster: str, dependency: str | None = None) -> str:
    """What can be known of a start on `slurm` or `local` before there is a folder for the run.

    Args:
        dependency: As `slurm.dependency` of a new run is.

    Returns:
        What a busy controller left unchecked.

    Raises:
        SlurmError: see `check_dependency` and `check_submission`; CheckError when this machine
            lacks the GPUs.
    """
    if cluster == "slurm":
        check_dependency(dependency or "")
        return check_submission(plan)
    from hpc_train.backends.local_devices import check_gpus_here

    check_gpus_here(plan)
    return ""


def start_run(
    run: RunDir, cluster: str, options: Sequence[str] = (), unchecked: str | None = None
) -> str:
    """Submit it to `slurm` or `local`.

    Args:
        options: More of sbatch's.
        unchecked: What `check_start` gave, where it was asked.

    Returns:
        The job id.

    Raises:
        SlurmError: when Slurm refuses; CheckError when this machine lacks the GPUs.
    """
    began = time.time()
    left_out: tuple[str, ...] = ()
    plan = read_plan(run)
    unchecked = check_start(plan, cluster) if unchecked is None else unchecked
    if cluster == "slurm":
        job_id, left_out = leave_out_bad_nodes(lambda bad: submit_slurm(run, plan, bad, options))
    else:
        job_id = submit_local(run, os.environ)
    note_submission(run, cluster, job_id, began, left_out, unchecked)
    move_dependents(run, lambda _said: None)
    return job_id


def note_submission(
    run: RunDir,
    backend: str,
    job_id: str,
    began: float,
    left_out: Sequence[str] = (),
    unchecked: str = "",
) -> None:
    """Write the submission into the history, with the time before the job could start."""
    data = {"job_id": job_id, "backend": backend, "left_out": list(left_out)}
    if backend == "slurm":
        data |= {"clusters": chosen_cluster(os.environ), "unchecked": unchecked}
    append_event(run.events, Event(began, EventKind.SUBMITTED, data))
    remember_root(os.environ, run.path.parent.parent)
