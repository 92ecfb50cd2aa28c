"""Runs for the live page, and a hand that types at it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.widgets import DataTable, Static

from hpc_train import api
from hpc_train.runs.layout import RunDir
from hpc_train.top import run_watcher
from hpc_train.top.live_page import LivePage
from tests.cli.conftest import DIGITS, beats

HOUR_S = 3600.0

WIDE = 220


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at as often as a test can: the pauses are tested by themselves."""
    monkeypatch.setattr(run_watcher, "EVERY_S", 0.05)
    monkeypatch.setattr(run_watcher, "SHARE", 100.0)


@pytest.fixture(scope="module")
def plan_json() -> str:
    return api.plan(api.load(DIGITS, nodes=2, gpus=2), for_script=True).to_json()


def slurm_time(in_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + in_s))


def rows(page: LivePage) -> list[dict[str, str]]:
    """The table that is drawn, by the header's words."""
    table = page.query_one(DataTable)
    names = [column.label.plain for column in table.ordered_columns]
    drawn = [table.get_row(row.key) for row in table.ordered_rows]
    return [{n: cell.plain for n, cell in zip(names, row, strict=True)} for row in drawn]


def shown(page: LivePage, where: str) -> str:
    return str(page.screen.query_one(where, Static).content)


async def until(pilot, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came so far"
        await pilot.pause(0.02)


def piloted(
    runs: Path, steps: Callable[..., Awaitable[None]], *, columns: int = WIDE, **options: object
) -> None:
    async def body() -> None:
        page = LivePage(runs, **options)
        async with page.run_test(size=(columns, 24), notifications=True) as pilot:
            await steps(page, pilot)

    asyncio.run(body())


@pytest.fixture
def two_runs(slurm, make_run, plan_json) -> tuple[RunDir, RunDir]:
    """One that trains past its limit, and one that waits, by Slurm's word."""
    trains, waits = make_run(1, ended=False), make_run(2, ended=False)
    for run in (trains, waits):
        run.plan.write_text(plan_json)
    waits.events.write_text(waits.events.read_text().splitlines()[0] + "\n")
    beats(
        trains,
        time=time.time(),
        step=200,
        steps=200 + round(3 * HOUR_S),
        steps_per_s=1.0,
        metrics={"val_acc": 0.5, "train_loss": 0.25},
    )
    trains.monitor.mkdir()
    gpus = [{"index": 0, "use_percent": 80}, {"index": 1, "use_percent": 90}]
    line = json.dumps({"time": time.time(), "gpus": gpus})
    (trains.monitor / "node1.jsonl").write_text(f"{line}\n{line[:20]}")
    slurm.says(
        f"1|RUNNING|None|{slurm_time(-HOUR_S)}|{slurm_time(HOUR_S - 20)}",
        f"2|PENDING|Priority|{slurm_time(HOUR_S)}|N/A",
    )
    return trains, waits
