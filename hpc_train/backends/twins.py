"""Runs that train the same as another one: those that have not ended, and one to go on with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.observe import observe, read_history
from hpc_train.backends.shorter_runs import ShorterRun, shorter_run
from hpc_train.backends.sweep_jobs import observe_all
from hpc_train.errors import HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import is_cancel_asked
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import all_runs
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir, events_of_point
from hpc_train.runs.sweep_status import SweepStatus

_MOST = 20  # of the newest: a plan is read of each


@dataclass(frozen=True)
class Twins:
    """Runs of one name, folder and config, as far as they are of use to who submits another.

    Attributes:
        is_open: Those that wait or train, and that nobody has cancelled; the newest first.
        stopped: The newest of all, where it ended early and left a checkpoint.
        step: That of the checkpoint.
        shorter: Where none trains the same: one that does but for its length, and is over.
    """

    is_open: list[RunStatus]
    stopped: RunStatus | None = None
    step: int = 0
    shorter: ShorterRun | None = None


def twins_of(run: RunDir) -> Twins:
    """Those of its name, in its folder of runs, with its config.

    Slurm is asked, once, only where such a run is not complete.
    """
    return _among(run.path.parent, read_plan(run), run)


def twins_of_plan(plan: Plan, folder: Path) -> Twins:
    """The same of a run that is not submitted yet; `folder` is that of its name."""
    return _among(folder, plan)


def _among(folder: Path, plan: Plan, run: RunDir | None = None) -> Twins:
    """Those in the folder of a name.

    Args:
        run: The one whose twins they are, where it is among them.
    """
    own = _what_it_trains(plan)
    own_path = run.path if run else None
    there = all_runs([folder.parent])
    namesakes = [it for it in there if it.path.parent == folder and it.path != own_path]
    newest = sorted(namesakes, key=lambda other: other.run_id, reverse=True)[:_MOST]
    plans = [(other, read) for other in newest if (read := _plan_of(other))]
    alike = [other for other, read in plans if _what_it_trains(read) == own]
    if not alike:
        return Twins([], shorter=shorter_run(plans, plan))
    twins = [other for other in alike if not other.done.exists()]
    found = observe(twins, time.time()) if twins else []
    job = newest_job_id(read_history(run.events)) if run else ""
    is_open = [it for it in found if goes_on(it) and not (job and it.job_id == job)]
    step = newest_step(twins[0]) if found and alike[0] == twins[0] else 0
    if is_open or not step or not found[0].state.ended or found[0].state is RunState.COMPLETED:
        return Twins(is_open)
    return Twins(is_open, found[0], step)


def twin_of_sweep(sweep: SweepDir) -> SweepStatus | None:
    """The newest other sweep of its name, in its folder, with its points, that goes on."""
    others = [SweepDir(it.parent) for it in sweep.path.parent.glob("*/sweep.json")]
    others = sorted((it for it in others if it.path != sweep.path), key=SweepDir.begun)
    own = _what_it_sweeps(sweep)
    alike = [it for it in others[-_MOST:] if _sweeps(it, own)]
    found = observe_all(alike, time.time()) if alike else []
    open_ones = [it for it in found if isinstance(it, SweepStatus) and goes_on(it)]
    return open_ones[-1] if open_ones else None


def goes_on(status: RunStatus | SweepStatus) -> bool:
    """Whether it has neither ended nor been cancelled: what is asked to leave saves first."""
    if isinstance(status, RunStatus):
        events = read_history(RunDir(Path(status.run_dir)).events)
        return not status.state.ended and not is_cancel_asked(events)
    sweep = SweepDir(Path(status.sweep_dir))
    told = read_history(sweep.events)
    still = [it.number for it in status.points if not it.run.state.ended]
    return any(not is_cancel_asked(events_of_point(sweep, it, told)) for it in still)


def _sweeps(sweep: SweepDir, own: tuple[object, ...]) -> bool:
    try:
        return not sweep.bench.exists() and _what_it_sweeps(sweep) == own
    except (HpcTrainError, OSError):  # another version's, or being removed: nobody knows
        return False


def _what_it_sweeps(sweep: SweepDir) -> tuple[object, ...]:
    return (*_what_it_trains(sweep.plan.plan), [point.overrides for point in sweep.plan.points])


def _plan_of(run: RunDir) -> Plan | None:
    try:
        return read_plan(run)
    except HpcTrainError:  # another version's, or half written: nobody knows
        return None


def _what_it_trains(plan: Plan) -> tuple[object, ...]:
    return (plan.verb, plan.config_hash)
