"""A rendered script that was submitted in another folder than that of its code."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.slurm.jobs import JobDetails, job_details

_ASK_S = 5.0


def check_place(plan: Plan, workdir: Path, job_id: str) -> None:
    """Refuse it before a folder of runs is made there, from which no resume could go on.

    sbatch starts a job in the folder that it was typed in, wherever the script lies (sbatch(1),
    --chdir). A container has its own modules, which are not looked for here.

    Args:
        job_id: Of this job; Slurm is asked for its script where it is in the wrong place.

    Raises:
        HpcTrainError: with the folder of the script, or one below, that has the code.
    """
    if plan.script is not None:
        if not os.path.lexists(workdir / plan.script.path):
            what = f"there is no {plan.script.path} in {workdir}, where the job was submitted"
            raise HpcTrainError(what, _cd(workdir, job_id, plan.script.path))
        return
    if plan.container is not None:
        return
    for key, spec in (("model", plan.training.model), ("data", plan.training.data)):
        module = spec.class_path.partition(".")[0]
        if not _is_found(module, workdir):
            raise HpcTrainError(
                f"{key}.class_path: there is no module {module} for {spec.class_path} in"
                f" {workdir}, where the job was submitted, nor in {sys.prefix}",
                f"{_cd(workdir, job_id, f'{module}.py', f'{module}/__init__.py')}; or name the"
                " environment that has it (env.venv, env.conda, env.modules)",
            )


def _is_found(module: str, workdir: Path) -> bool:
    try:
        in_folder = PathFinder.find_spec(module, [str(workdir)])
        return (in_folder or importlib.util.find_spec(module)) is not None
    except (ImportError, ValueError):  # of a module that is half there: the rank tells of it
        return True


def _cd(workdir: Path, job_id: str, *files: str) -> str:
    """Where to submit it: the script's own folder, or the one right below, that has such a file."""
    names = [it for it in files if not Path(it).is_absolute()]
    script = _script_of(job_id)
    submit = "submit a rendered script in the folder that it was rendered in"
    if script is not None and any(os.path.lexists(script.parent / it) for it in names):
        return f"{submit}: cd {shlex.quote(str(script.parent))} && sbatch {_word(script.name)}"
    found = [path for name in names for path in workdir.glob(f"*/{name}")]
    below = {workdir / path.relative_to(workdir).parts[0] for path in found}
    folder = shlex.quote(str(below.pop())) if len(below) == 1 else "FOLDER"
    return f"{submit}: cd {folder} && sbatch {_word(str(script)) if script else 'FILE'}"


def _word(file: str) -> str:
    return shlex.quote(f"./{file}" if file.startswith("-") else file)


def _script_of(job_id: str) -> Path | None:
    """The file that was handed to sbatch, where Slurm tells it and it is there still."""
    try:
        job = job_details(job_id, timeout_s=_ASK_S) if job_id else JobDetails({})
    except SlurmError:
        return None
    command = job.get("Command")
    script = Path(job.get("WorkDir"), command).resolve()
    return script if command and script.is_file() else None
