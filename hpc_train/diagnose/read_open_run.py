"""A run that goes on, whose newest attempt ended by what may come again: why, before it is over."""

from __future__ import annotations

from dataclasses import replace

from hpc_train.diagnose.diagnosis import Culprit
from hpc_train.diagnose.read_run import LIKELY, named, of_history
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus


def told_while_open(run: RunDir, status: RunStatus) -> tuple[AttemptRecord, Culprit] | None:
    """The newest attempt that has ended, and what has likely ended it.

    Else each attempt would wait in the queue for the same end, until `requeue.budget` is spent.
    """
    over = [record for record in status.attempts if record.outcome]
    if status.state.ended or not over:
        return None
    newest = over[-1]
    found = of_history(run, status, newest, "")
    if not found or found.name not in LIKELY:
        return None
    alike = [it.attempt for it in over if _end(it) == _end(newest)]
    at = f"; at step {newest.last_step} in attempts {', '.join(map(str, alike))}"
    return newest, named(replace(found, cause=found.cause + at * bool(alike[1:])), run)


def _end(record: AttemptRecord) -> tuple[str, int]:
    return record.error, record.last_step
