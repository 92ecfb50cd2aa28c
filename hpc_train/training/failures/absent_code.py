"""Code that a rank does not find: whether the submission had it, which changes what to do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.runs.imported_code import files_of_module
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan


class AbsentCodeError(ConfigError):
    """A module or a script is not there.

    Args:
        files: Those that it can be, from the folder that the ranks run in.
        message: See `HpcTrainError`.
        hint: See there.
    """

    def __init__(self, files: Sequence[str], message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.files = files


def as_gone(error: BaseException, run: RunDir) -> BaseException:
    """The error, or in its place the file that was deleted or renamed while the run waited."""
    if not isinstance(error, (AbsentCodeError, ModuleNotFoundError)):
        return error
    from hpc_train.runs.provenance import gone_sources  # of a rank that fails alone

    try:
        plan = read_plan(run)
        gone = gone_sources(run, Path(plan.workdir))
    except (HpcTrainError, OSError):
        return error
    found = next((name for name in _files(error, plan) if name in gone), "")
    if not found:
        return error
    file = Path(plan.workdir, found)
    return ConfigError(
        f"{file.name} was there at the submission and is gone: {file}",
        f"put it back, and then hpc-train resume {shlex.quote(run.run_id)}",
    )


def _files(error: AbsentCodeError | ModuleNotFoundError, plan: Plan) -> Sequence[str]:
    """What is not there, from the folder of the ranks; the modules of a script lie beside it."""
    if isinstance(error, AbsentCodeError):
        return error.files
    folder = Path(plan.script.path).parent if plan.script else Path()
    return [(folder / name).as_posix() for name in files_of_module(error.name or "")]
