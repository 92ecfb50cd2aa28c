"""A project that was copied as a whole (`cp -r project trial`), with its runs."""

from __future__ import annotations

from pathlib import Path

from hpc_train.config.python_text.modules import find_module
from hpc_train.plan.plan import Plan
from hpc_train.runs.copies import copied_from
from hpc_train.runs.layout import RunDir


def copied_project(run: RunDir, plan: Plan) -> Path | None:
    """The copy of the run's project that a copy of the run lies in; it has the code as well.

    None of all other runs, as of one that was copied alone, and of a copy that went on before: its
    plan has its own folder.
    """
    origin, workdir = copied_from(run), Path(plan.workdir)
    if origin is None or not origin.is_relative_to(workdir):
        return None
    inside = origin.relative_to(workdir).parts
    if run.path.parts[-len(inside) :] != inside:
        return None
    here = run.path.parents[len(inside) - 1]
    files = _files(plan, workdir)
    has_them = bool(files) and all((here / it).is_file() for it in files)
    try:
        return here if has_them and not here.samefile(workdir) else None
    except OSError:
        return None


def _files(plan: Plan, workdir: Path) -> list[Path]:
    """The script, else the files of the model's and the data's class, as far as they are in it."""
    if plan.script is not None:
        return [] if Path(plan.script.path).is_absolute() else [Path(plan.script.path)]
    files = []
    for spec in (plan.training.model, plan.training.data):
        module, _ = find_module(spec.class_path, [str(workdir)])
        if module is not None and module.file and module.file.is_relative_to(workdir):
            files.append(module.file.relative_to(workdir))
    return files
