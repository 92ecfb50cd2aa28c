"""A run whose folder was moved or copied, or whose project was: where it goes on."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from hpc_train.codec import read_object
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.runs.copied_project import copied_project
from hpc_train.runs.copies import copied_from
from hpc_train.runs.folders_meant import to_keep_its_name
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_project import how_it_was_left
from hpc_train.runs.sweep_dir import SweepDir


def moved_from(run: RunDir, plan: Plan) -> Path | None:
    """Where a run was made, if that is elsewhere; a folder of two names is one."""
    made = Path(plan.runs_dir) / slug(plan.name) / run.run_id
    try:
        return None if not run.named or made.samefile(run.path) else made
    except OSError:
        return made


def at_its_place(run: RunDir, plan: Plan, check: Callable[[Path], None]) -> tuple[Plan, list[str]]:
    """The plan with the folders of today, and what has changed, a line each.

    Args:
        check: Refuses a folder that has not the code of the run.

    Raises:
        ConfigError: the project is gone, and the folder that one is in has not its code.
    """
    made, origin, notes = moved_from(run, plan), copied_from(run), []
    runs_dir, workdir = plan.runs_dir, copied_project(run, plan) or Path(plan.workdir)
    if made is not None:
        runs_dir = str(run.path.parent.parent)
        if moves := to_keep_its_name(run):
            notes.append(f"`list` names it {run.name} there: {moves}")
        if workdir.is_relative_to(made):  # its snapshot
            workdir = run.path / workdir.relative_to(made)
    left = how_it_was_left(run, dataclasses.replace(plan, workdir=str(workdir)))
    if made is not None or origin is not None:
        was = f"this is a copy of {origin}" if origin else f"the run was moved from {made}"
        code = "" if left else f" with the code of {workdir}"
        notes.insert(0, f"{was}, and goes on in {run.path}{code}")
    if left:
        gone, workdir = workdir, Path.cwd()
        what = f"the run's project was in {gone}, which is {left}"
        try:
            check(workdir)
        except ConfigError as error:
            lets = f"ln -s FOLDER {shlex.quote(str(gone))}"
            other = f"; or let the old name lead to it: {lets}" if not gone.is_dir() else ""
            raise ConfigError(
                f"{what}; in this folder, {error.message}",
                f"go to the folder where the project is now, and type it there{other}",
            ) from error
        notes.append(f"{what}: it goes on with the code of {workdir}")
    return dataclasses.replace(plan, workdir=str(workdir), runs_dir=runs_dir), notes


def config_file(run: RunDir) -> str:
    """The file that a run was submitted with; of a project that was moved since, where it is now.

    Empty where nobody knows it.
    """
    return _file_and_project(run)[0]


def project_of_today(run: RunDir, workdir: Path) -> Path:
    """The folder that a run was submitted from; that to which it was moved, with its config.

    Args:
        workdir: As the run knows it; it is given back where nothing else is known.
    """
    return _file_and_project(run)[1] or workdir


def _file_and_project(run: RunDir) -> tuple[str, Path | None]:
    """The config's file, and the folder to which its project was moved; None where it was not."""
    document = read_object(run.environment)
    file = str((document.get("config") or {}).get("file") or "")
    made = Path(str(document.get("workdir") or "/"))
    if not file or Path(file).exists() or not Path(file).is_relative_to(made):
        return file, None
    for folder in _moved_to(run, made):
        if (found := folder / Path(file).relative_to(made)).is_file():
            return str(found), folder
    return file, None


def _moved_to(run: RunDir, made: Path) -> Iterator[Path]:
    """Where a project may be that was in `made`: a resume has noted it, or one is in it."""
    noted, here = Path(str(read_object(run.plan).get("workdir") or made)), Path.cwd()
    is_copy = noted.is_relative_to(run.path)
    if noted.is_dir() and not is_copy and noted != made:
        yield noted
    if here != made and (run.path.is_relative_to(here) or not made.is_dir()):
        yield here


def refuse_moved_sweep(sweep: SweepDir) -> None:
    """Refuse to submit a sweep whose tasks would look for it where it was made.

    Raises:
        HpcTrainError: with the command that moves it back.
    """
    plan = sweep.plan.plan
    made = Path(plan.runs_dir) / slug(plan.name) / sweep.sweep_id
    if made.is_dir() and made.samefile(sweep.path):
        return
    here, there = shlex.quote(str(sweep.path)), shlex.quote(str(made.parent))
    raise HpcTrainError(
        f"{sweep.name} ({sweep.sweep_id}) was moved from {made.parent}, where its tasks look",
        f"move it back with its points: mkdir -p {there} && mv {here}* {there}; or resume one"
        f" point: hpc-train resume {here}-0",
    )
