"""A checkpoint that no longer fits its model: the files that have changed since it did."""

from __future__ import annotations

import shlex

from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.runs.layout import RunDir
from hpc_train.training.failures.unfit_checkpoint import ANOTHER_MODEL, FIX, unfit_checkpoint


def as_changed(error: BaseException, run: RunDir, attempt: int) -> BaseException:
    """The error, or in its place what of the run's code has to be taken back."""
    if not (unfit := unfit_checkpoint(error)):
        return error
    name = shlex.quote(run.run_id)
    try:
        changed = _changed_since(run, attempt)
    except (HpcTrainError, OSError, ValueError):
        changed = ""
    if not changed:
        return ConfigError(unfit, FIX.replace("RUN", name))
    back = f"take the parameters' names and shapes back, and hpc-train resume {name}"
    return ConfigError(unfit, f"{changed}: {back}; {ANOTHER_MODEL}")


def _changed_since(run: RunDir, attempt: int) -> str:
    """The files that differ from the newest attempt with other code; empty where none do."""
    # Of a rank that fails alone.
    from hpc_train.runs.provenance import imported_edits, named_files, read_state

    now, name = read_state(run, attempt), shlex.quote(run.run_id)
    for number in (*range(attempt - 1, -1, -1), None):
        before = read_state(run, number)
        if before and (files := imported_edits(run, before, now)):
            have = "has" if len(files) == 1 else "have"
            since = f"attempt {number}" if number is not None else "the submission"
            shown = f"{name}@{number}" if number is not None else name
            diff = f"hpc-train diff {shown}"
            return f"{named_files(files)} {have} changed since {since}, as {diff} shows"
    return ""
