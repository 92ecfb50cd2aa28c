"""Runs that train the same as another one, and have not ended."""

from __future__ import annotations

import time

from hpc_train.backends.observe import observe, read_history
from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import all_runs
from hpc_train.runs.status import RunStatus

_MOST = 20  # of the newest: a plan is read of each


def open_twins(run: RunDir) -> list[RunStatus]:
    """Those of its name, in its folder of runs, with its config; the newest first.

    Slurm is asked, once, only where such a run is not complete.
    """
    own = _what_it_trains(read_plan(run))
    namesakes = [
        other
        for other in all_runs([run.path.parent.parent])
        if other.path.parent == run.path.parent and other.path != run.path
    ]
    newest = sorted(namesakes, key=lambda other: other.run_id, reverse=True)[:_MOST]
    twins = [other for other in newest if not other.done.exists() and _trains(other, own)]
    found = observe(twins, time.time()) if twins else []
    job = newest_job_id(read_history(run.events))
    return [it for it in found if not it.state.ended and it.job_id != job]


def _trains(run: RunDir, own: tuple[object, ...]) -> bool:
    try:
        return _what_it_trains(read_plan(run)) == own
    except HpcTrainError:  # another version's, or half written: nobody knows
        return False


def _what_it_trains(plan: Plan) -> tuple[object, ...]:
    return (plan.verb, plan.config_hash)
