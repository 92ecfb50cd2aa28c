"""The plan of a run as far as it can be read, for what is told of it; read anew once changed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.sweep_dir import SweepDir, sweep_of


def known_plan(run: RunDir) -> Plan | None:
    """The plan of a run, or of its sweep before it has begun; None where it cannot be read."""
    try:
        if not run.plan.exists() and (sweep := sweep_of(run)):
            return plan_of_sweep(sweep)
        return _plan(run, run.plan.stat().st_mtime_ns)
    except (OSError, HpcTrainError):
        return None


def plan_of_sweep(sweep: SweepDir) -> Plan:
    """What the points of a sweep have alike.

    Raises:
        OSError: it cannot be read.
        HpcTrainError: it is damaged, or of another version.
    """
    return _sweeps_plan(sweep.path, sweep.document.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _plan(run: RunDir, _changed: int) -> Plan:
    return read_plan(run)


@lru_cache(maxsize=64)
def _sweeps_plan(path: Path, _changed: int) -> Plan:
    return SweepDir(path).plan.plan
