"""Benches from Python: short runs of one config over shapes, each a job of its own.

    loaded = hpc_train.load("digits.yaml", sweep=["slurm.nodes=1,2,3"])
    bench = submit_bench(loaded, cluster="slurm")
    for status in follow_bench(bench): print(status.summary)
    bench_table(bench).rows

A bench is a sweep whose points differ in what the tasks of one job array share.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train import api
from hpc_train.errors import CheckError, HpcTrainError, NoSuchRunError, UsageError
from hpc_train.plan.bench_plan import STEPS, BenchPlan, BenchPoint, bench_name, speed_key
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.plan.sweep_plan import point_text
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.run_word import run_word
from hpc_train.sweeps import Sweep, find_sweep, prepared

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.config.schema import Config
    from hpc_train.plan.sweep_plan import SweepPlan
    from hpc_train.report.bench_table import BenchTable
    from hpc_train.runs.sweep_status import SweepStatus


def plan_bench(
    loaded: LoadedConfig, *, steps: int = STEPS
) -> tuple[SweepPlan, list[Config], BenchPlan]:
    """Decide every point; nothing is written.

    Args:
        loaded: Its `sweep` holds the shapes and what else is varied; without one it is one point.
        steps: Optimizer steps of each measurement.

    Raises:
        HpcTrainError: naming the point that is refused.
    """
    from hpc_train.config.sweeps.sweep import points_of
    from hpc_train.plan.sweep_plan import SweepPlan, sweep_point

    if loaded.config.hosts:
        raise UsageError("a bench is for Slurm or this machine, and hosts are named", "hosts=[]")
    chosen = points_of(loaded) if loaded.config.sweep else [{}]
    plans, configs, asked = [], [], []
    for overrides in chosen:
        try:
            plan, config, point = _plan_point(loaded, overrides, steps)
        except HpcTrainError as error:
            if overrides:
                error.message = f"{point_text(overrides)}: {error.message}"
            raise
        plans.append(plan)
        configs.append(config)
        asked.append(point)
    points = [
        sweep_point(plans[0], plan, overrides, is_task=False)
        for plan, overrides in zip(plans, chosen, strict=True)
    ]
    bench = BenchPlan(training=loaded.config.name, steps=steps, points=tuple(asked))
    return SweepPlan(plan=plans[0], points=tuple(points)), configs, bench


def _plan_point(
    loaded: LoadedConfig, overrides: Mapping[str, Any], steps: int
) -> tuple[Plan, Config, BenchPoint]:
    """What is run, and what it tells of."""
    from hpc_train.backends.bench_config import bench_config
    from hpc_train.config.sweeps.sweep import load_point
    from hpc_train.config.validate import check_training

    own = load_point(loaded, overrides)
    check_training(own, workdir=Path.cwd())
    saves = own.config.checkpoint
    point = BenchPoint(
        key=speed_key(api.plan(own, for_script=True)),
        save_every_steps=saves.every_n_steps,
        save_every_s=60 * saves.every_n_minutes if saves.every_n_minutes else None,
    )
    short = bench_config(own, steps=steps)
    plan = api.plan(short, for_script=True)
    return plan if plan.script else replace(plan, verb="bench"), short.config, point


def submit_bench(loaded: LoadedConfig, *, cluster: str, steps: int = STEPS) -> Sweep:
    """Make the runs of all points; on Slurm submit each, here `follow_bench` starts them.

    Raises:
        ConfigError: for a point that is refused; CheckError for one that this machine is too small
            for, SlurmError for one that Slurm refuses. Nothing stays behind.
    """
    from hpc_train.backends.local_devices import check_gpus_here
    from hpc_train.backends.start_run import note_submission
    from hpc_train.backends.started_by import refuse_several
    from hpc_train.runs.layout import RunDir
    from hpc_train.runs.registry import absent_folders, remove_run
    from hpc_train.runs.snapshot import take
    from hpc_train.runs.sweep_dir import make_sweep
    from hpc_train.slurm.partitions import check_partition

    refuse_several(os.environ)
    portable, configs, bench = plan_bench(loaded, steps=steps)
    for plan in map(portable.plan_of, range(len(portable.points))):
        if cluster == "slurm":
            check_partition(dict(plan.slurm.options), loaded.origins, plan)
        else:
            check_gpus_here(plan)
    sweep, files, decided, code = prepared(loaded, portable, configs)
    absent = absent_folders(sweep.path.parent)
    made = Sweep(sweep)
    make_sweep(sweep, decided, {**files, sweep.bench.name: bench.to_json()})
    started: list[api.Run] = []
    try:
        if code is not None:
            take(code, sweep.path)
        for number in range(len(decided.points)):
            run = made.run(number)
            if cluster == "slurm":
                run.start(cluster)
                started.append(run)
            else:
                note_submission(run.directory, cluster, "", time.time())
    except (HpcTrainError, OSError) as error:
        _end_started(made, started, error)
        for number in range(len(decided.points)):
            remove_run(sweep.point(number), [])
        remove_run(RunDir(sweep.path), absent)
        raise
    return made


def _end_started(bench: Sweep, started: list[api.Run], first: Exception) -> None:
    """Cancel what was submitted before an error; what cannot be is told behind it, and is kept."""
    for run in started:
        try:
            run.cancel()
        except HpcTrainError as second:
            said = f"{getattr(first, 'message', first)}; and what was submitted before goes on:"
            hint = f"once that is mended: hpc-train cancel {run_word(bench.directory.path)}"
            raise HpcTrainError(f"{said} {second.message}", hint) from first


def follow_bench(bench: Sweep, *, cluster: str) -> Generator[SweepStatus, None, None]:
    """Its status again and again, until its last point has ended.

    On this machine one point after another is started here; who stops to listen ends them.
    """
    from hpc_train.backends.follow import ASK_SLURM_EVERY_S

    if cluster == "slurm":
        while not (status := bench.status()).state.ended:
            yield status
            time.sleep(ASK_SLURM_EVERY_S)
        yield status
        return
    runs = [bench.run(number) for number in range(len(bench.directory.plan.points))]
    try:
        for run in runs:
            run.start(cluster)
            for _ in run.follow():
                yield bench.status()
    finally:
        for run, point in zip(runs, bench.status().points, strict=True):
            if point.run.state is RunState.PENDING and not point.run.job_id:
                told = {"state": RunState.CANCELLED.value, "reason": "the bench was ended before"}
                append_event(run.directory.events, Event(time.time(), EventKind.RUN_ENDED, told))
            elif not point.run.state.ended:
                run.cancel()


def find_bench(reference: str) -> Sweep:
    """The bench that an id, a folder or a name means; the training's name will do.

    Raises:
        NoSuchRunError: there is none.
    """
    found = find_sweep(reference) or find_sweep(bench_name(reference))
    if found is None or not found.directory.bench.exists():
        raise NoSuchRunError(f"no bench answers to {reference!r}", "hpc-train bench CFG makes one")
    return found


def bench_table(bench: Sweep) -> BenchTable:
    """What is measured by now.

    Raises:
        CheckError: it was made by another version.
    """
    from hpc_train.report.bench_table import bench_rows, make_table
    from hpc_train.runs.step_times import read_step_times

    directory = bench.directory
    try:
        asked = BenchPlan.from_json(directory.bench.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckError(f"{directory.bench} cannot be read: {error}", "bench again") from error
    status = bench.status()
    plans = [directory.plan.plan_of(point.number) for point in status.points]
    measured = [read_step_times(directory.point(point.number)) for point in status.points]
    return make_table(status, asked, bench_rows(status, asked, plans, measured))
