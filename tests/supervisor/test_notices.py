"""Notices: a real server is the channel, Apprise is real; the ranks are made up here."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hpc_train.backends.observe import observe
from hpc_train.diagnose.read_run import sentence_of
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import Outcome
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from hpc_train.supervisor import run
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt import Attempt, new_attempt
from hpc_train.supervisor.notices import StragglerWatch, notify_of_start, preempted_often
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.report.made import gpu_line
from tests.supervisor.told_runs import (
    DONE,
    ERROR,
    FAILED,
    ends_as,
    eventually,
    listening,
    made_run,
    settle,
)

from .channels import Channel

pytestmark = pytest.mark.slow

__all__ = ["listening"]

HANG = AttemptOutcome(outcome=Outcome.HANG, reason="nothing moved")


# --- what is told


def test_a_run_tells_its_start_and_its_end_once_whatever_is_in_between(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path)
    ends_as(monkeypatch, HANG, DONE)
    assert run.supervise(made, {}, batch=False) == 0
    settle()
    assert eventually(listening, 2) == ["digits began", "digits completed"]
    end = next(notice for notice in listening.came if "completed" in notice["title"])
    assert end["message"].startswith(
        "digits (20261122-100000-ab12) is completed: the training is complete\nstep 0, attempt 1"
    )
    assert "hpc-train status 20261122-100000-ab12" in end["message"]


def test_a_failure_carries_the_words_of_status_and_the_sentence_of_diagnose(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path, events=["failure"])
    ends_as(monkeypatch, FAILED, error=ERROR)
    assert run.supervise(made, {}, batch=False) != 0
    settle()
    assert listening.titles == ["digits failed"]
    (status,) = observe([made], time.time())
    sentence = sentence_of(made, status)
    assert "albumentations" in sentence
    message = listening.came[0]["message"]
    assert f"is failed: {status.reason}\ncause: {sentence}\n" in message
    assert "hpc-train diagnose 20261122-100000-ab12" in message


@pytest.mark.parametrize(("events", "count"), [(["end"], 1), (["failure"], 0), ([], 0)])
def test_only_what_the_config_names_is_told(
    listening: Channel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: list[str],
    count: int,
) -> None:
    ends_as(monkeypatch, DONE)
    assert run.supervise(made_run(tmp_path, events=events), {}, batch=False) == 0
    settle()
    assert len(listening.came) == count


HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        ([], []),
        ([1, 2], []),
        ([1, 2, 3], [3]),
        ([1, 2, 3, 4, 5], [3]),  # once a day
        ([1, 2, 30, 40], []),
        ([1, 10, 24.9], [24.9]),
        ([1, 10, 25], []),  # the first one is a day ago
        ([1, 2, 3, 26, 27, 28], [3, 28]),
        ([3, 2, 1], []),  # a clock that went back: nothing is said of the future
    ],
)
def test_the_third_preemption_in_a_day_is_news_once_a_day(
    hours: list[float], told: list[float]
) -> None:
    records = [
        AttemptRecord(
            attempt=n, job_id="7", started=0.0, ended=hour * HOUR_S, outcome=Outcome.PREEMPTED
        )
        for n, hour in enumerate(hours)
    ]
    news = [hours[n] for n in range(len(hours)) if preempted_often(records[: n + 1])]
    assert news == told
    other = AttemptRecord(attempt=99, job_id="7", started=0.0, ended=9e9, outcome=Outcome.HANG)
    assert not preempted_often([*records, other])


def test_the_third_preemption_is_told_while_the_run_goes_on(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path, events=["preemptions"])
    now = time.time()
    for number in (0, 1):
        for kind, more in (
            (EventKind.ATTEMPT_STARTED, {"job_id": "7", "nodes": ["n1"]}),
            (EventKind.ATTEMPT_ENDED, {"outcome": "preempted", "saved_step": 10 * number + 10}),
        ):
            append_event(made.events, Event(now - 100, kind, {"attempt": number, **more}))
    preempted = AttemptOutcome(outcome=Outcome.PREEMPTED, reason="a job of higher priority")
    (made.checkpoints / "step-000000030").mkdir(parents=True)
    (made.checkpoints / "step-000000030" / "manifest.json").write_text("{}")
    ends_as(monkeypatch, preempted, DONE)
    assert run.supervise(made, {}, batch=False) == 0
    settle()
    assert listening.titles == ["digits was preempted 3 times in 24 h"]
    assert "is pending: preempted: goes on from step 30" in listening.came[0]["message"]


def watched(tmp_path: Path, uses: list[float], *, phase: str = "train") -> Attempt:
    """An attempt while its nodes are monitored."""
    made = made_run(tmp_path)
    plan = Plan.from_json(made.plan.read_text(encoding="utf-8"))
    place = Allocation(backend="slurm", job_id="7", nodes=("n0",))
    attempt = new_attempt(plan, place, made, {}, SupervisorSignals(), SupervisorLog())
    now = time.time()
    beat = Heartbeat(rank=0, node="n0", pid=1, time=now, moved=now, phase=phase, step=9, batch=9)
    write_heartbeat(attempt.folder, beat)
    made.monitor.mkdir()
    for number, use in enumerate(uses):
        lines = [json.dumps(gpu_line(5 * n, use if n > 20 else 95.0)) for n in range(200)]
        (made.monitor / f"n{number}.jsonl").write_text("\n".join(lines) + "\n")
    return attempt


@pytest.mark.parametrize(("count", "said"), [(1, "n0"), (2, "n[0-1]"), (64, "n[0-63]")])
def test_the_start_names_all_of_its_nodes(
    listening: Channel, tmp_path: Path, count: int, said: str
) -> None:
    attempt = watched(tmp_path, [])
    told = {"attempt": 0, "job_id": "7", "nodes": [f"n{number}" for number in range(count)]}
    append_event(attempt.run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, told))
    notify_of_start(attempt)
    assert eventually(listening, 1) == ["digits began"]
    assert f" began on {said} as job 7\n" in listening.came[0]["message"]


def test_a_straggler_is_told_once_an_attempt_with_what_differs(
    listening: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = StragglerWatch(watched(tmp_path, [96, 41, 95, 97]), window_s=300)
    looks.compare()
    looks.compare()
    assert eventually(listening, 1) == ["digits: n1 is a straggler"]
    assert "n1 differs from the other nodes for 5 min:" in listening.came[0]["message"]
    assert "GPU 41 % (the others 96 %)" in listening.came[0]["message"]
    assert capsys.readouterr().out.count("n1 differs") == 1


def test_the_nodes_are_compared_once_they_have_trained_for_a_while(
    listening: Channel, tmp_path: Path
) -> None:
    looks = StragglerWatch(watched(tmp_path, [96, 41, 95, 97]), window_s=300)
    looks.look()
    settle()
    assert (listening.came, looks.told) == ([], set())
    looks.look_at = 0
    looks.look()
    assert eventually(listening, 1) == ["digits: n1 is a straggler"]
    assert looks.look_at > time.monotonic()


@pytest.mark.parametrize(
    ("uses", "phase"), [([96, 95, 97], "train"), ([96, 41], "train"), ([96, 41, 95, 97], "save")]
)
def test_nodes_that_are_alike_two_nodes_and_a_save_are_no_straggler(
    tmp_path: Path, uses: list[float], phase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    StragglerWatch(watched(tmp_path, uses, phase=phase), window_s=300).compare()
    assert "differs" not in capsys.readouterr().out


def test_a_node_of_an_earlier_attempt_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = watched(tmp_path, [96, 41, 95, 97])
    os.utime(attempt.run.monitor / "n1.jsonl", (1e9, 1e9))
    StragglerWatch(attempt, window_s=300).compare()
    assert "differs" not in capsys.readouterr().out
