"""`python -m hpc_train.supervisor`: what the batch script calls, with a run or with a plan."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.plan.script import render_script
from hpc_train.plan.sweep_plan import SweepPlan
from hpc_train.runs.events import Event, EventKind, append_event, event_line, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lost_output import survive_lost_output
from hpc_train.runs.registry import create_run, new_run_id
from hpc_train.runs.sweep_dir import SweepDir, make_point, make_sweep
from hpc_train.slurm.command import is_available
from hpc_train.slurm.control import job_id_in
from hpc_train.slurm.jobs import is_federated
from hpc_train.slurm.own_job import check_own_job
from hpc_train.slurm.site import chosen_cluster
from hpc_train.supervisor.rendered_elsewhere import check_place
from hpc_train.supervisor.run import supervise

DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def main(arguments: list[str] | None = None) -> int:
    """Supervise the run that the arguments name; the exit code is the run's."""
    parser = argparse.ArgumentParser(prog="python -m hpc_train.supervisor", description=__doc__)
    parser.add_argument("--run-dir", type=Path, help="an existing run directory, with its plan")
    parser.add_argument("--sweep-dir", type=Path, help="a sweep; this is a task of its job array")
    parser.add_argument("--plan", type=Path, help="a plan as JSON; without a folder makes a run")
    options = parser.parse_args(arguments)
    if options.sweep_dir is not None:
        return run_to_exit_code(lambda: point_of_job(SweepDir(options.sweep_dir), os.environ))
    if options.run_dir is not None:
        return run_to_exit_code(lambda: RunDir(options.run_dir.resolve()))
    if options.plan is None:
        parser.error("--run-dir or --plan is needed")
    text = options.plan.read_text(encoding="utf-8")
    find = run_of_sweep_script if '"points":' in text else run_of_script
    return run_to_exit_code(lambda: find(text, os.environ, Path.cwd()))


def run_to_exit_code(find: Callable[[], RunDir]) -> int:
    """Supervise in this job's batch step; an error becomes two lines and its exit code."""
    survive_lost_output()
    run: RunDir | None = None
    try:
        run = find()
        # Here Slurm's commands know their cluster; to find one by its name they would have to reach
        # slurmdbd, and a node may not.
        os.environ.pop("SLURM_CLUSTERS", None)
        return supervise(run, os.environ, batch="SLURM_JOB_ID" in os.environ)
    except HpcTrainError as error:
        return _told(error)
    except OSError as error:
        if error.errno not in DISK_TROUBLE:
            raise
        # What fails as a file is closed or synced names none.
        place = error.filename or (run.path if run else "runs_dir of the config")
        return _told(
            HpcTrainError(
                f"the run directory cannot be written: {error.strerror} ({place})",
                f"make room there, and then hpc-train resume {run.run_id if run else 'RUN'}",
            )
        )


def _told(error: HpcTrainError) -> int:
    print(f"hpc-train: error: {error.message}", file=sys.stderr)  # noqa: T201
    if error.hint:
        print(f"  fix: {error.hint}", file=sys.stderr)  # noqa: T201
    return error.exit_code


def run_of_script(text: str, environ: Mapping[str, str], cwd: Path) -> RunDir:
    """The run of a rendered script: made at the job's first start, found again at a restart."""
    plan = Plan.from_json(text)
    workdir = (cwd / plan.workdir).resolve()
    runs_dir = workdir / Path(plan.runs_dir).expanduser()
    job_id = environ.get("SLURM_JOB_ID", "")
    if job_id and not plan.hosts:
        check_own_job(environ, plan)  # srun bash job.sbatch, sbatch --ntasks=1 job.sbatch
    cluster = _cluster(environ, job_id)
    run_id = slug(f"{cluster}-{job_id}") if job_id else new_run_id(time.time())
    run = RunDir(runs_dir / slug(plan.name) / run_id)
    if run.plan.exists():
        return run
    check_place(plan, workdir, job_id)
    settled = plan.placed(str(workdir), str(runs_dir))
    files = {
        run.script.name: render_script(plan, run_dir=str(run.path)),
        run.plan.name: settled.to_json(),
    }
    create_run(runs_dir, slug(plan.name), run_id, files)
    backend = "slurm" if job_id else "local"
    job = job_id_in(environ) if job_id else ""
    if job_id:
        _link_job_log(run.job_log(job))
    elif is_available():
        say = "this is no job of Slurm's, and trains on this machine; for the cluster: sbatch FILE"
        print(f"hpc-train: {say}", file=sys.stderr)  # noqa: T201
    data = {"job_id": job, "backend": backend, "cluster": cluster if job_id else ""}
    append_event(run.events, Event(time.time(), EventKind.SUBMITTED, data))
    return run


def _link_job_log(place: Path) -> None:
    """Let the run find what its job says, which sbatch has put where it was typed.

    Where that is no file, nothing is linked: a terminal, or a pipe.
    """
    with contextlib.suppress(OSError):
        said = os.fstat(1)
        if stat.S_ISREG(said.st_mode) and not os.path.lexists(place):
            place.symlink_to(Path("/proc/self/fd/1").readlink())


def _cluster(environ: Mapping[str, str], job_id: str) -> str:
    """Whose job it is: one of a federation may go on in any of its clusters after a requeue."""
    return "federation" if is_federated(job_id) else environ.get("SLURM_CLUSTER_NAME", "slurm")


def run_of_sweep_script(text: str, environ: Mapping[str, str], cwd: Path) -> RunDir:
    """The run of this task of a rendered sweep, whose folder the first task makes for all."""
    decided = SweepPlan.from_json(text)
    array = environ.get("SLURM_ARRAY_JOB_ID", "")
    workdir = (cwd / decided.plan.workdir).resolve()
    runs_dir = workdir / Path(decided.plan.runs_dir).expanduser()
    cluster = _cluster(environ, array)
    sweep = SweepDir(runs_dir / slug(decided.plan.name) / slug(f"{cluster}-{array}"))
    if not sweep.document.exists():
        check_place(decided.plan, workdir, environ.get("SLURM_JOB_ID", array))
        data = {"job_id": array, "backend": "slurm", "cluster": cluster}
        submitted = event_line(Event(time.time(), EventKind.SUBMITTED, data))
        make_sweep(
            sweep, decided.placed(str(workdir), str(runs_dir)), {sweep.events.name: submitted}
        )
    run = point_of_job(sweep, environ)
    _link_job_log(run.job_log(job_id_in(environ)))
    return run


def point_of_job(sweep: SweepDir, environ: Mapping[str, str]) -> RunDir:
    """The run of this task of the sweep's job array.

    Raises:
        HpcTrainError: when this is no task of an array.
    """
    task = environ.get("SLURM_ARRAY_TASK_ID", "")
    if not task:
        raise HpcTrainError(
            "this is the script of a sweep, and no job array runs it",
            "submit it with sbatch as it is, without another --array",
        )
    run = make_point(sweep, int(task))
    if not any(event.kind is EventKind.SUBMITTED for event in read_events(run.events)):
        # The job has begun before the command that submitted it could write so.
        where = {"backend": "slurm", "clusters": chosen_cluster(environ)}
        data = {"job_id": job_id_in(environ), **where}
        append_event(run.events, Event(time.time(), EventKind.SUBMITTED, data))
    return run


if __name__ == "__main__":
    sys.exit(main())
