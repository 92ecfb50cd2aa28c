"""A rank that something outside has killed, while its run goes on: why, before it comes again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat

KILLED = "rank 1 on n1 was killed by SIGKILL first, by something outside the training"
LIKELY = "rank 1 on n1 was killed from outside (SIGKILL): often for the host's memory"
FIX = "more memory for the job (slurm.mem, "
NOW = time.time()


@pytest.fixture
def goes_on(slurm, tmp_path: Path) -> RunDir:
    """A run without any attempt; its job waits."""
    run = RunDir(tmp_path / "runs" / "digits" / "20261118-100000-0000")
    run.attempts.mkdir(parents=True)
    run.plan.write_text("{}")
    slurm.says("7|PENDING|BeginTime|N/A")
    append_event(run.events, Event(NOW, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"}))
    return run


def ended(run: RunDir, number: int, step: int, outcome: str = "node_failure") -> None:
    start = {"attempt": number, "job_id": "7", "nodes": ["n1"]}
    killed = outcome == "node_failure"
    end = {
        "outcome": outcome,
        "reason": KILLED if killed else "preempted by Slurm",
        "error": "was killed by SIGKILL" if killed else "",
        "last_step": step,
    }
    append_event(run.events, Event(NOW + number, EventKind.ATTEMPT_STARTED, start))
    append_event(
        run.events, Event(NOW + number + 0.5, EventKind.ATTEMPT_ENDED, {"attempt": number, **end})
    )


@pytest.mark.parametrize("steps", [(20,), (20, 20), (20, 31, 20), (20, 31)])
def test_what_often_kills_a_rank_is_told_from_the_first_time_on(
    hpc, goes_on: RunDir, steps: tuple[int, ...]
) -> None:
    """It was told once `requeue.budget` was spent: four waits in the queue later."""
    for number, step in enumerate(steps):
        ended(goes_on, number, step)
    newest = len(steps) - 1
    same = [str(number) for number, step in enumerate(steps) if step == steps[-1]]
    again = f"; at step {steps[-1]} in attempts {', '.join(same)}" if same[1:] else ""
    said = hpc("status", "digits").out
    assert f"  cause      attempt {newest}: {LIKELY}{again}\n  fix        {FIX}" in said
    assert f"  why        hpc-train diagnose {goes_on.run_id} --attempt {newest}\n" in said
    diagnosed = hpc("diagnose", "digits")
    assert (diagnosed.code, "failed: " in diagnosed.out) == (0, False)
    assert f"note: attempt {newest}: {LIKELY}{again}; fix: {FIX}" in diagnosed.out


def test_it_is_told_while_the_next_attempt_trains_and_not_once_another_end_has_come(
    hpc, slurm, goes_on: RunDir
) -> None:
    ended(goes_on, 0, 20)
    slurm.says("7|RUNNING|None|N/A")
    start = {"attempt": 1, "job_id": "7", "nodes": ["n1"]}
    append_event(goes_on.events, Event(NOW + 1, EventKind.ATTEMPT_STARTED, start))
    goes_on.attempt(1).path.mkdir(parents=True)
    beat = Heartbeat(rank=0, node="n1", pid=1, time=NOW, moved=NOW, phase="train", step=3)
    write_heartbeat(goes_on.attempt(1), beat)
    assert f"cause      attempt 0: {LIKELY}\n" in hpc("status", "digits").out
    ended(goes_on, 1, 90, "preempted")
    for words in (["status", "digits"], ["diagnose", "digits"]):
        assert LIKELY not in hpc(*words).out
