"""Whether a run is slower than its baseline, and what is a baseline."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.plan.bench_plan import BenchPlan, BenchPoint, speed_key
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, append_progress
from hpc_train.runs.status import RunStatus
from hpc_train.runs.step_times import (
    StepTimes,
    find_baseline,
    read_step_times,
    slowdown,
    slower_text,
    step_times_of,
    write_step_times,
)
from hpc_train.runs.sweep_dir import SweepDir
from tests.plan.configs import config

STEADY = step_times_of([0.1, 0.101, 0.099, 0.1, 0.102, 0.098], 0.1)
NOISY = step_times_of([0.06, 0.07, 0.09, 0.1, 0.12, 0.16, 0.2, 0.1], 0.11)


def beat(step_time_s: float | None, step: int = 100) -> Heartbeat:
    return Heartbeat(
        rank=0, node="n", pid=1, time=0, moved=0, phase="train", step=step, step_time_s=step_time_s
    )


@pytest.mark.parametrize(
    ("measured", "step_time_s", "slower"),
    [
        (STEADY, 0.123, 0.23),
        (STEADY, 0.109, None),  # every step is slower, by less than nodes of one kind differ
        (STEADY, 0.05, None),
        (STEADY, None, None),
        (NOISY, 0.15, None),  # half as long again, and as some steps of the bench were
        (NOISY, 0.3, 2.0),
    ],
)
def test_a_run_is_slower_where_its_steps_are_outside_of_the_noise(
    measured: StepTimes, step_time_s: float | None, slower: float | None
) -> None:
    found = slowdown(measured, beat(step_time_s), 0)
    assert found == (None if slower is None else pytest.approx(slower, abs=0.01))


def test_the_first_steps_of_an_attempt_tell_nothing() -> None:
    assert slowdown(STEADY, beat(0.5, step=29), 0) is None
    assert slowdown(STEADY, beat(0.5, step=30), 0) is not None
    assert slowdown(STEADY, beat(0.5, step=1020), 1000) is None
    assert slowdown(STEADY, None, 0) is None


def test_a_scripts_run_is_measured_by_its_progress_without_the_warm_up(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "s" / "1")
    run.attempt(0).path.mkdir(parents=True)

    def tell(at: float, step: int) -> None:
        told = dataclasses.replace(beat(None, step), time=at)
        append_progress(run.attempt(0), told)

    tell(0.0, 0)
    tell(100.0, 10)
    tell(101.0, 20)
    assert read_step_times(run) is None
    tell(103.0, 30)
    found = read_step_times(run)
    assert found is not None
    assert (found.step_s, found.data_s, found.steps) == (pytest.approx(0.15), None, 20)
    assert (found.low_s, found.high_s) == (pytest.approx(0.1), pytest.approx(0.2))


def made_plan(runs: Path, nodes: int) -> Plan:
    made = config(name="x", global_batch_size=6)
    made.slurm.nodes, made.slurm.gpus_per_node = nodes, 1
    made.runs_dir = str(runs)
    return make_plan(made, workdir="/w", python="/usr/bin/python3")


def bench(runs: Path, number: str, plans: list[Plan], *measured: StepTimes | None) -> None:
    sweep = SweepDir(runs / "x-bench" / number)
    sweep.path.mkdir(parents=True)
    points = tuple(
        BenchPoint(key=speed_key(plan), save_every_steps=None, save_every_s=None) for plan in plans
    )
    sweep.bench.write_text(BenchPlan(training="x", steps=20, points=points).to_json())
    for place, it in enumerate(measured):
        sweep.point(place).metrics.mkdir(parents=True)
        if it:
            write_step_times(sweep.point(place), it)


def test_the_baseline_is_of_the_newest_bench_that_measured_the_same_shape(tmp_path: Path) -> None:
    one, two, three = (made_plan(tmp_path, nodes) for nodes in (1, 2, 3))
    assert find_baseline(two) is None
    bench(tmp_path, "20260101-000000-aaaa", [one, two], STEADY, STEADY)
    bench(tmp_path, "20260102-000000-aaaa", [one, two], NOISY, None)
    bench(tmp_path, "20260103-000000-aaaa", [three], None)
    (tmp_path / "x-bench" / "20260104-000000-aaaa").mkdir()
    (tmp_path / "x-bench" / "20260104-000000-aaaa" / "bench.json").write_text('{"torn')
    found = [find_baseline(plan) for plan in (one, two, three)]
    assert [it and it.measured for it in found] == [NOISY, STEADY, None]


def test_a_running_run_says_by_how_much_it_is_slower_and_than_what(tmp_path: Path) -> None:
    plan = made_plan(tmp_path, 2)
    bench(tmp_path, "20260101-000000-aaaa", [plan], STEADY)
    run = RunDir(tmp_path / "x" / "r")
    run.path.mkdir(parents=True)
    run.plan.write_text(plan.to_json())
    status = RunStatus(
        run="r",
        name="x",
        run_dir=str(run.path),
        state=RunState.RUNNING,
        job_id="1",
        backend="slurm",
        beat=beat(0.123),
        attempts=(AttemptRecord(attempt=0, job_id="1", started=0.0),),
    )
    assert slower_text(status) == (
        "23 % slower than its baseline (bench x-bench: 10 it/s at 2 x 1)"
    )
    assert slower_text(dataclasses.replace(status, beat=beat(0.1))) == ""
    assert slower_text(dataclasses.replace(status, beat=None)) == ""
    damaged = RunDir(tmp_path / "x" / "damaged")
    damaged.path.mkdir()
    assert slower_text(dataclasses.replace(status, run_dir=str(damaged.path))) == ""
    torn = RunDir(tmp_path / "x" / "torn")
    torn.path.mkdir()
    torn.plan.write_text("{}")
    assert slower_text(dataclasses.replace(status, run_dir=str(torn.path))) == ""
