"""Rows, picture and recommendation of a bench, from numbers that are known."""

from __future__ import annotations

import dataclasses

import pytest

from hpc_train.plan.bench_plan import BenchPlan, BenchPoint, speed_key
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.report.bench_table import (
    BenchTable,
    bench_chart,
    bench_rows,
    make_table,
    picture_lines,
    time_shares,
)
from hpc_train.report.page import render_bench
from hpc_train.runs.status import RunStatus
from hpc_train.runs.step_times import StepTimes
from hpc_train.runs.sweep_status import PointStatus, SweepStatus
from tests.plan.configs import config

POINT = BenchPoint(key="k", save_every_steps=None, save_every_s=600.0)


def took(step_s: float, *, spread: float = 0.02, **parts: float) -> StepTimes:
    low, high = step_s * (1 - spread), step_s * (1 + spread)
    return StepTimes(steps=20, step_s=step_s, low_s=low, median_s=step_s, high_s=high, **parts)


def plan_of(nodes: int, gpus: int = 1, **changes: object) -> Plan:
    made = config(global_batch_size=96, **changes)
    made.slurm.nodes, made.slurm.gpus_per_node = nodes, gpus
    return make_plan(made, workdir="/w", python="/usr/bin/python3")


def table_of(
    measured: dict[int, StepTimes | None], overrides: dict[int, dict[str, object]] | None = None
) -> BenchTable:
    """A bench over so many nodes each; what was not measured has failed."""
    points = tuple(
        PointStatus(
            number,
            {"slurm.nodes": nodes, **(overrides or {}).get(nodes, {})},
            RunStatus(
                run=f"b-{number}",
                name="digits-bench",
                run_dir="/runs/b",
                state=RunState.COMPLETED if it else RunState.FAILED,
                job_id=str(number),
                backend="slurm",
                reason="" if it else "rank 1 on node2: ValueError: two is too many",
            ),
        )
        for number, (nodes, it) in enumerate(measured.items())
    )
    status = SweepStatus(
        sweep="b",
        name="digits-bench",
        sweep_dir="/runs/b",
        job_id="",
        submitted=None,
        points=points,
    )
    asked = BenchPlan(training="digits", steps=20, points=(POINT,) * len(points))
    plans = [plan_of(nodes) for nodes in measured]
    return make_table(status, asked, bench_rows(status, asked, plans, list(measured.values())))


def test_a_row_has_rates_efficiency_and_what_became_of_a_shape_that_failed() -> None:
    table = table_of({1: took(0.3), 2: None, 3: took(0.125)})
    first, second, third = table.rows
    assert (first.samples_per_s, first.steps_per_s) == (pytest.approx(320), pytest.approx(1 / 0.3))
    assert third.efficiency == pytest.approx(0.8)
    assert second.why == "failed: rank 1 on node2: ValueError: two is too many"
    assert second.rate is None
    assert table.cells[1][0] == "2 x 1"
    assert table.chosen == third
    assert "2.4 times the rate of 1 x 1 with 3.0 times the ranks" in table.reason


def test_where_no_shape_was_measured_nothing_is_recommended() -> None:
    table = table_of({1: None, 2: None})
    assert (table.chosen, table.reason) == (None, "no shape was measured")
    assert list(picture_lines(table, 80)) == []
    assert bench_chart(table) is None
    assert table.to_json()["chosen"] is None


def test_one_shape_alone_is_told_as_that() -> None:
    assert table_of({2: took(0.1)}).reason == "nothing else was measured"


def test_what_is_faster_within_the_noise_is_not_worth_more_ranks() -> None:
    noisy = table_of({1: took(0.2, spread=0.3), 2: took(0.13, spread=0.3)})
    assert noisy.chosen is not None
    assert (noisy.chosen.shape, noisy.reason) == ("1 x 1", "2 x 1 is not clearly faster")
    clear = table_of({1: took(0.2, spread=0.05), 2: took(0.13, spread=0.05)})
    assert clear.chosen is not None
    assert clear.chosen.shape == "2 x 1"


def test_a_shape_that_wastes_its_ranks_is_named_and_not_recommended() -> None:
    table = table_of({1: took(0.3), 2: took(0.16), 3: took(0.145)})
    assert table.chosen is not None
    assert table.chosen.shape == "2 x 1"
    assert "3 x 1 is faster at 69 % efficiency" in table.reason


def test_the_efficiency_is_that_of_the_same_variant() -> None:
    overrides = {1: {"trainer.precision": 32}, 2: {"trainer.precision": "bf16-mixed"}}
    table = table_of({1: took(0.3), 2: took(0.1)}, overrides)
    assert [row.efficiency for row in table.rows] == [1, 1]
    assert table.rows[1].name == "2 x 1 precision=bf16-mixed"
    assert "OTHERWISE" in table.header


def test_the_shares_of_the_time_add_up() -> None:
    measured = took(0.5, data_s=0.1, comm_s=0.2, save_s=6.0)
    shares = time_shares(measured, POINT)
    assert sum(shares.values()) == pytest.approx(1)
    step_s = 0.5 + 6.0 / (600 / 0.5)  # a save each 10 minutes, shared out over its steps
    assert shares["data"] == pytest.approx(0.1 / step_s)
    assert shares["communication"] == pytest.approx(0.2 / step_s)
    assert shares["compute"] == pytest.approx(0.2 / step_s)
    assert shares["saving"] == pytest.approx(0.005 / step_s)
    often = dataclasses.replace(POINT, save_every_steps=12)
    assert time_shares(measured, often)["saving"] == pytest.approx(0.5)
    never = dataclasses.replace(POINT, save_every_s=None)
    assert time_shares(measured, never)["saving"] == 0
    assert time_shares(took(0.5), POINT) == {}, "of a script only the rate is known"


def test_noise_gives_no_share_below_nothing() -> None:
    shares = time_shares(took(0.5, data_s=0.6, comm_s=0.1), POINT)
    assert (shares["data"], shares["compute"], shares["communication"]) == (1, 0, 0)
    shares = time_shares(took(0.5, data_s=0.1, comm_s=0.6), POINT)
    assert (shares["compute"], shares["communication"]) == (0, pytest.approx(0.8))


def test_communication_that_cannot_be_left_out_is_not_called_none() -> None:
    alike = took(0.5, data_s=0.1)
    assert time_shares(alike, POINT, 1)["communication"] == 0
    assert "communication" not in time_shares(alike, POINT, 8)
    assert sum(time_shares(alike, POINT, 8).values()) == pytest.approx(1)
    assert table_of({2: alike}).cells[0][5] == "-"


def test_what_takes_a_fifth_of_the_time_is_advised_on() -> None:
    table = table_of({1: took(0.5, data_s=0.2)})
    assert "40 % of its time is data: more CPUs" in table.reason


def test_a_rate_that_cannot_be_is_doubted() -> None:
    assert "was slowed, measure again" in table_of({1: took(0.3), 2: took(0.05)}).reason
    assert "was slowed" not in table_of({1: took(0.3), 2: took(0.12)}).reason


def test_the_picture_fits_and_is_as_long_as_the_rate() -> None:
    full = {"data_s": 0.05, "comm_s": 0.1}
    table = table_of({1: took(0.3, **full), 2: took(0.2, **full), 3: took(0.2)})
    for width in (40, 80, 200):
        lines = list(picture_lines(table, width))
        assert max(map(len, lines)) <= width
    first, second, *_, legend = picture_lines(table, 80)
    bar = [line.partition(" x 1  ")[2] for line in (first, second)]
    assert len(bar[1].rstrip("·|")) == pytest.approx(len(bar[0]) * 1.5, abs=1)
    assert bar[1].endswith("|"), "two nodes at 1.5 times the rate fall short of twice"
    assert "█ compute" in legend
    assert "▒" in first
    assert "░" in first


def test_the_page_is_whole_and_what_a_run_says_is_text() -> None:
    named = {"training": "<script>alert(1)</script>"}
    table = dataclasses.replace(table_of({1: took(0.3), 2: None, 3: took(0.1)}), **named)
    page = render_bench(table)
    assert "<script>" not in page
    assert "two is too many" in page
    assert "rate in samples/s" in page
    assert bench_chart(table_of({1: took(0.3), 2: None})) is None, "a line needs two points"


def test_trainings_share_a_key_where_their_steps_take_as_long() -> None:
    key = speed_key(plan_of(2))
    assert speed_key(plan_of(2, seed=7, trainer={"max_epochs": 3})) == speed_key(
        plan_of(2, trainer={"max_epochs": 90, "limit_val_batches": 0})
    )
    assert speed_key(plan_of(3)) != key
    assert speed_key(plan_of(2, micro_batch_size=8)) != key
    assert speed_key(plan_of(2, trainer={"precision": "bf16-mixed"})) != speed_key(
        plan_of(2, trainer={})
    )
