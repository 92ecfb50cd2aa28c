"""The folder that a run was submitted from, after its project was moved out of it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.runs.layout import RunDir


def how_it_was_left(run: RunDir, plan: Plan) -> str:
    """Why the project is not there any more: `gone`, or `empty now`; empty where it may be there.

    `mv * ../new` leaves the folder and its hidden files. Only of a run that was moved as well an
    empty folder tells so: a config elsewhere may have been submitted from one.
    """
    workdir = Path(plan.workdir)
    if not workdir.is_dir():
        return "gone"
    is_moved = run.named and not Path(plan.runs_dir, slug(plan.name), run.run_id).exists()
    with contextlib.suppress(OSError):
        if is_moved and all(it.name.startswith((".", "__pycache__")) for it in workdir.iterdir()):
            return "empty now"
    return ""
