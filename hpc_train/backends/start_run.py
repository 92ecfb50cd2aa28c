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
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import remember_root
from hpc_train.slurm.site import chosen_cluster
from hpc_train.supervisor.dependents import move_dependents


def start_run(run: RunDir, cluster: str, options: Sequence[str] = ()) -> str:
    """Submit it to `slurm` or `local`.

    Args:
        options: More of sbatch's.

    Returns:
        The job id.

    Raises:
        SlurmError: when Slurm refuses; CheckError when this machine lacks the GPUs.
    """
    began = time.time()
    left_out: tuple[str, ...] = ()
    unchecked = ""
    plan = read_plan(run)
    if cluster == "slurm":
        unchecked = check_submission(plan)
        job_id, left_out = leave_out_bad_nodes(lambda bad: submit_slurm(run, plan, bad, options))
    else:
        from hpc_train.backends.local_devices import check_gpus_here

        check_gpus_here(plan)
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
