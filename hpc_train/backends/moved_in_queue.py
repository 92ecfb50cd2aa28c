"""A run that was moved while its job waits, and a job whose node could not open the job's log.

Slurm opens the log of a job where its script names it; a run's script names the folder that it was
submitted in, also after that was moved.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.known_plan import known_plan, plan_of_sweep
from hpc_train.errors import HpcTrainError
from hpc_train.plan.quoting import slug
from hpc_train.runs.copies import folder_in_script
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.sweep_dir import sweep_of


@dataclass(frozen=True)
class _MovedInQueue:
    """What a job was submitted for: a run, or the sweep of whose array it is a task.

    Attributes:
        made: Its folder then.
        here: Its folder now.
        log: Of the job, where Slurm opens it.
    """

    what: str
    made: Path
    here: Path
    log: Path

    @property
    def back(self) -> str:
        """The command that moves it back; a sweep's points lie beside it."""
        parent, here = shlex.quote(str(self.made.parent)), shlex.quote(str(self.here))
        return f"mkdir -p {parent} && mv {here}{'*' if self.what == 'sweep' else ''} {parent}"


def look_for_its_folder(run: RunDir, job_id: str) -> str:
    """Of a job that waits: that it will not find its run, and what to do; empty where it will."""
    moved = _moved(run, job_id)
    if moved is None:
        return ""
    here = shlex.quote(str(moved.here))
    return (
        f"the {moved.what} was moved from {moved.made} to {moved.here}, and its job looks for it"
        f" where it was: the job fails when it starts, unless it is moved back ({moved.back});"
        f" or hpc-train cancel {here}{_resume(moved)}"
    )


def lines_on_its_move(run: RunDir, job_id: str) -> tuple[str, ...]:
    """The same, a line each as in a run's history."""
    moved = _moved(run, job_id)
    if moved is None:
        return ()
    where = f"{moved.made}, where its job looks for the {moved.what}"
    here = shlex.quote(str(moved.here))
    return (
        f"moved      from {where}: the job fails when it starts, unless it is moved back",
        f"back       {moved.back}",
        f"or         hpc-train cancel {here}{_resume(moved)}",
    )


def why_log_is_unopened(run: RunDir, job_id: str) -> str:
    """Why a node could not open the job's log, and what to do, as far as it is seen from here."""
    if moved := _moved(run, job_id):
        return (
            f"the {moved.what} was moved from {moved.made} to {moved.here} while its job waited;"
            f" slurmd could not open {moved.log}{_resume(moved)}"
        )
    log, resume = run.job_log(job_id), f"hpc-train resume {run_word(run.path)}"
    folder = (log.readlink() if log.is_symlink() else log).parent  # of a rendered script's run
    try:
        kept = os.statvfs(folder)
    except FileNotFoundError:
        return f"{_unopened(folder)}, which is gone; {resume} makes it anew"
    except OSError:
        return ""
    if kept.f_flag & os.ST_RDONLY:
        then = "once it can be written"
        return f"{_unopened(folder)}, which is read-only; {then}: {resume}"
    full = "space" if not kept.f_bavail else "inodes" if kept.f_files and not kept.f_favail else ""
    if full:
        what = f"{_unopened(folder)}, whose file system is full (no {full} left)"
        return f"{what}; make room there, and then {resume}"
    return ""


def _unopened(folder: Path) -> str:
    return f"its node could not open the job's log in {folder}"


def _resume(moved: _MovedInQueue) -> str:
    here = shlex.quote(str(moved.here))
    if moved.what == "run":
        return f"; hpc-train resume {here}"
    return f"; move it back ({moved.back}), and then hpc-train resume {moved.here.name}"


def _moved(run: RunDir, job_id: str) -> _MovedInQueue | None:
    """Where the job looks for its log, if that is gone and this machine would see it there."""
    sweep = sweep_of(run) if "_" in job_id else None
    try:
        plan = plan_of_sweep(sweep) if sweep else known_plan(run)
    except (OSError, HpcTrainError):
        return None
    if plan is None:
        return None
    if not (sweep.config(0) if sweep else run.config).is_file():
        return None  # of a rendered script, whose log is where sbatch was typed
    here = sweep.path if sweep else run.path
    runs_dir = Path(plan.runs_dir)
    made = runs_dir / slug(plan.name) / here.name
    if sweep is None and (submitted := folder_in_script(run)):  # a `resume` elsewhere writes anew
        made, runs_dir = submitted, submitted.parent.parent
    then = RunDir(made.with_name(run.run_id))
    log = then.job_log(job_id)
    if made == here or log.parent.is_dir() or not _is_seen(runs_dir, here):
        return None
    return _MovedInQueue("sweep" if sweep else "run", made, here, log)


def _is_seen(runs_dir: Path, here: Path) -> bool:
    """Whether a folder that is not in there is gone, and not under another name on this machine.

    Where a whole project was renamed, that of its parents which is left has to lie on the file
    system that the run is on now.
    """
    left = next(place for place in (runs_dir, *runs_dir.parents) if place.is_dir())
    if left == Path(runs_dir.anchor):
        return False
    return left in (runs_dir, runs_dir.parent) or left.stat().st_dev == here.stat().st_dev
