"""The file of `init_from` that was replaced since the run took its own link to it.

The link keeps the weights of another run from their deletion there. A file that is the user's own,
and was made anew before the run took a step, is meant as it is now.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from hpc_train.backends.find_weights import check_file
from hpc_train.plan.plan import Plan
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir
from hpc_train.runs.weights_arguments import run_of_weights


def notes_on_replaced(run: RunDir, plan: Plan) -> Iterator[str]:
    """A line where `hold_anew` will take another file.

    Raises:
        CheckError: it is no checkpoint.
    """
    if named := _replaced(run, plan):
        check_file(named)
        since = f"the file was replaced since {run.name} ({run.run_id}) was submitted"
        yield f"the weights in {named} are read as they are now: {since}"


def hold_anew(run: RunDir, plan: Plan) -> None:
    """Link the file that is there now, in the place of the one that was."""
    named = _replaced(run, plan)
    if named is None:
        return
    own = run.weights / named.name
    new = own.with_name(f".{own.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    try:
        os.link(named, new)
    except OSError:  # another file system: without a link the file itself is read
        own.unlink(missing_ok=True)
    else:
        new.replace(own)


def _replaced(run: RunDir, plan: Plan) -> Path | None:
    """The named file, where it is the user's and another than the one that the run has held."""
    named = Path(plan.weights) if plan.weights else None
    if named is None or plan.verb != "fit" or not named.is_file() or run_of_weights(named):
        return None
    own = run.weights / named.name
    is_other = own.is_file() and not own.samefile(named)
    return named if is_other and newest_step(run) == 0 else None
