"""`hpc-train top` before a real Slurm: what runs and what waits is seen, and a cancel cancels."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind, read_events
from hpc_train.top.run_screen import CancelQuestion
from tests.cli.conftest import beats
from tests.cli.live_page import HOUR_S, piloted, plan_json, rows, shown, until
from tests.cluster import Cluster

pytestmark = pytest.mark.slurm
__all__ = ["plan_json"]  # a fixture

SLEEP = "#!/bin/sh\nexec sleep 600\n"


def test_a_running_and_a_waiting_job_are_seen_and_the_question_really_cancels(
    slurm_cluster: Cluster, make_run, plan_json, tmp_path: Path, monkeypatch
) -> None:
    for name, value in slurm_cluster.env().items():
        monkeypatch.setenv(name, value)
    running = slurm_cluster.sbatch(["--time=1:00:00"], SLEEP)
    slurm_cluster.wait(running, "RUNNING")
    waiting = slurm_cluster.sbatch(["--begin=now+2hours"], SLEEP)
    trains, waits = make_run(int(running), ended=False), make_run(int(waiting), ended=False)
    trains.plan.write_text(plan_json)
    waits.events.write_text(waits.events.read_text().splitlines()[0] + "\n")
    now = {"time": time.time(), "step": 5, "steps": 5 + round(2.5 * HOUR_S), "steps_per_s": 1.0}
    beats(trains, **now)

    async def steps(page, pilot):
        await until(pilot, lambda: any(row["WHY"].startswith("BeginTime") for row in rows(page)))
        first, second = rows(page)
        assert (first["STATE"], second["STATE"]) == ("pending", "running")
        assert "; starts 20" in first["WHY"]
        assert second["WHY"] == "won't finish before its limit: will be requeued twice"
        assert second["LIMIT"].startswith("5")  # minutes
        await pilot.press("c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        assert f"job {waiting}" in shown(page, "#ask")
        await pilot.press("n")
        await until(pilot, lambda: len(page.screen_stack) == 1)
        await pilot.press("down", "c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        assert f"job {running}" in shown(page, "#ask")
        await pilot.press("y")
        await until(pilot, lambda: slurm_cluster.job(running)["JobState"] == "CANCELLED")

    piloted(tmp_path / "runs", steps)
    assert slurm_cluster.job(waiting)["JobState"] == "PENDING"
    assert read_events(trains.events)[-1].kind is EventKind.CANCEL_REQUESTED
    assert EventKind.CANCEL_REQUESTED not in [it.kind for it in read_events(waits.events)]
