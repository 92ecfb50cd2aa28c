"""Submitting a run's directory, for the first time or again, and what its history holds of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.backends.submit import (
    check_submission,
    leave_out_bad_nodes,
    submit_local,
    submit_slurm,
)
from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.errors import HpcTrainError, RunCancelledError, SlurmError
from hpc_train.plan.container import check_runtime
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.runs.events import Event, EventKind, append_event, cancels
from hpc_train.runs.known_places import remember_root
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import waited_lock
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import absent_folders, remove_run
from hpc_train.runs.run_word import run_word
from hpc_train.slurm.dependencies import check_dependency
from hpc_train.slurm.site import chosen_cluster
from hpc_train.supervisor.dependents import Priors, move_dependents, wait_for

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig


def check_start(
    plan: Plan, cluster: str, dependency: str | None = None, origins: Origins = NOWHERE
) -> str:
    """What can be known of a start on `slurm` or `local` before there is a folder for the run.

    Args:
        dependency: As `slurm.dependency` of a new run is.
        origins: Of a new run's values.

    Returns:
        What a busy controller left unchecked.

    Raises:
        SlurmError: see `check_dependency` and `check_submission`; CheckError when this machine
            lacks the GPUs.
    """
    if cluster == "slurm":
        check_dependency(dependency or "")
        return check_submission(plan, origins)
    from hpc_train.backends.local_devices import check_gpus_here

    check_gpus_here(plan)
    return ""


def make_and_start(
    loaded: LoadedConfig,
    portable: Plan,
    workdir: Path,
    cluster: str,
    held: Path | None = None,
    after: Priors | None = None,
) -> RunDir:
    """Make a new run and submit it to `slurm` or `local`; refused, nothing of it stays behind.

    Args:
        held: As `make_run` takes it.
        after: Runs or sweeps that have to be complete before.
    """
    from hpc_train.backends.make_run import make_run

    check_runtime(portable, is_slurm=cluster == "slurm")
    dependency = loaded.config.slurm.dependency
    unchecked = check_start(portable, cluster, dependency, loaded.origins)
    first = wait_for(after, dependency, cluster)
    absent = absent_folders(workdir / Path(portable.runs_dir).expanduser() / slug(portable.name))
    run = make_run(loaded, portable, workdir, held)
    try:
        with waited_lock(run.plan, wait_s=0):  # tells that it is being submitted
            job_id = start_run(run, cluster, first.options if first else (), unchecked)
    except RunCancelledError:
        raise
    except HpcTrainError:
        remove_run(run, absent)
        raise
    if first:
        first.note(run, job_id)
    return run


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
        RunCancelledError: somebody has cancelled it meanwhile, and so it is.
    """
    began = time.time()
    wishes = cancels(run.events)
    left_out: tuple[str, ...] = ()
    plan = read_plan(run)
    unchecked = check_start(plan, cluster) if unchecked is None else unchecked
    if cluster == "slurm":
        job_id, left_out = leave_out_bad_nodes(
            plan, lambda bad: submit_slurm(run, plan, bad, options)
        )
    else:
        job_id = submit_local(run, os.environ)
    note_submission(run, cluster, job_id, began, left_out, unchecked)
    move_dependents(run, lambda _said: None)
    if cancels(run.events) > wishes:
        raise _cancelled_meanwhile(run, job_id)
    return job_id


def _cancelled_meanwhile(run: RunDir, job_id: str) -> RunCancelledError:
    """Carry out a cancel that came before anybody knew which job it meant."""
    from hpc_train.backends.cancel import cancel_one

    told = f"job {job_id} is cancelled"
    try:
        cancel_one([run])
    except SlurmError:
        raise
    except HpcTrainError as error:  # it has ended by now
        told = f"job {job_id}: {error.message}"
    what = f"{run.name} ({run.run_id}) was cancelled while it was being submitted"
    return RunCancelledError(
        f"{what}: {told}", f"hpc-train resume {run_word(run.path)} submits it again"
    )


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
