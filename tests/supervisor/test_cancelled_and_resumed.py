"""A run whose attempt was killed by a cancel before its end was told, and that was resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.events import Event, EventKind, append_event, end_of, read_events
from hpc_train.runs.history import AttemptRecord, attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from hpc_train.supervisor.orphaned_attempt import close_unfinished
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.supervisor.attempted import Scene, scene
from tests.supervisor.test_cancels import supervise

__all__ = ["scene"]

ASKED = "`hpc-train cancel` asked for it"
SAVED = AttemptOutcome(outcome=Outcome.COMPLETED, reason="all ranks finished")
KEPT = "; nothing new was saved"


def told(scene: Scene, at: float, kind: EventKind, **data: object) -> None:
    append_event(scene.run.events, Event(at, kind, data))


def submitted(scene: Scene, at: float, job: str) -> None:
    told(scene, at, EventKind.SUBMITTED, job_id=job, backend="slurm")


def began(scene: Scene, at: float, job: str, attempt: int = 0) -> None:
    """Its ranks gave signs of life for 40 s."""
    submitted(scene, at - 1, job)
    known = {"attempt": attempt, "nodes": ["n1", "n2"], "restarts": 0}
    told(scene, at, EventKind.ATTEMPT_STARTED, **known, job_id=job)
    for rank in range(2):
        last = at + 40 - rank
        beat = Heartbeat(rank=rank, node="n1", pid=1, phase="train", step=9, time=last, moved=last)
        write_heartbeat(scene.run.attempt(attempt), beat)


def asked(scene: Scene, at: float) -> None:
    told(scene, at, EventKind.CANCEL_REQUESTED, by="me")


def closed(scene: Scene, attempt: int = 0) -> AttemptRecord:
    """The attempt as job 7 finds it."""
    close_unfinished(scene.run, scene.allocation, {}, SupervisorLog())
    return _record(scene.run, attempt)


def _record(run: RunDir, attempt: int) -> AttemptRecord:
    return next(it for it in attempts_in(read_events(run.events)) if it.attempt == attempt)


@pytest.fixture(params=["told", "not told yet"])
def resumed(request: pytest.FixtureRequest) -> Callable[[Scene, float], None]:
    """Job 7 may begin before its submission is written down."""
    return lambda scene, at: submitted(scene, at, "7") if request.param == "told" else None


@pytest.mark.parametrize("cancels", [1, 2])
def test_it_was_cancelled_and_ended_with_its_last_sign_of_life(
    scene: Scene, resumed: Callable[[Scene, float], None], cancels: int
) -> None:
    began(scene, 100, "5")
    for number in range(cancels):
        asked(scene, 120 + number)
    resumed(scene, 3000)
    scene.slurm.says("sacct", f"CANCELLED by {os.getuid()}")
    record = closed(scene)
    assert (record.outcome, record.reason) == (Outcome.CANCELLED, ASKED + KEPT)
    assert record.ended == 140


def test_a_cancel_after_the_last_sign_of_life_is_its_end(scene: Scene) -> None:
    began(scene, 100, "5")
    asked(scene, 200)
    submitted(scene, 3000, "7")
    assert closed(scene).ended == 200


@pytest.mark.parametrize(
    ("by", "who"), [(os.getuid(), "scancel"), (1, "scancel by daemon")], ids=["own", "another"]
)
def test_a_scancel_is_told_with_the_other_user_who_did_it(
    scene: Scene, resumed: Callable[[Scene, float], None], by: int, who: str
) -> None:
    began(scene, 100, "5")
    resumed(scene, 3000)
    scene.slurm.says("sacct", f"CANCELLED by {by}")
    record = closed(scene)
    assert (record.outcome, record.ended) == (Outcome.CANCELLED, 140)
    assert record.reason == f"the job was cancelled ({who}){KEPT}"


def test_a_cancel_that_slurm_has_told_of_once_is_known_without_accounting(scene: Scene) -> None:
    began(scene, 100, "5")
    told(scene, 200, EventKind.SEEN, state="cancelled", reason="", beginnings=2)
    submitted(scene, 3000, "7")
    record = closed(scene)
    assert (record.outcome, record.ended) == (Outcome.CANCELLED, 140)


def test_a_run_that_was_resumed_twice_was_cancelled_once(scene: Scene) -> None:
    began(scene, 100, "5")
    asked(scene, 120)
    submitted(scene, 1000, "6")
    asked(scene, 1100)
    submitted(scene, 3000, "7")
    assert closed(scene).reason == ASKED + KEPT


def test_a_cancel_in_the_queue_is_none_of_the_attempt_before(scene: Scene) -> None:
    began(scene, 100, "5")
    submitted(scene, 1000, "6")
    asked(scene, 1100)
    submitted(scene, 3000, "7")
    scene.slurm.says("sacct", "FAILED")
    record = closed(scene)
    assert record.outcome is Outcome.NODE_FAILURE
    assert "the supervisor was killed (Slurm: FAILED)" in record.reason


def test_a_run_that_never_began_has_nothing_to_close(scene: Scene) -> None:
    submitted(scene, 100, "5")
    asked(scene, 120)
    submitted(scene, 3000, "7")
    assert close_unfinished(scene.run, scene.allocation, {}, SupervisorLog()) is None


def test_a_preemption_stays_one_and_does_not_last_until_the_next_start(scene: Scene) -> None:
    began(scene, 100, "5")
    submitted(scene, 3000, "7")
    scene.slurm.says("sacct", "PREEMPTED")
    record = closed(scene)
    assert (record.outcome, record.ended) == (Outcome.PREEMPTED, 140)


@pytest.mark.parametrize("earlier", [0, 2])
@pytest.mark.parametrize("cancel", ["hpc-train", "scancel"])
def test_the_resumed_run_goes_on(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    resumed: Callable[[Scene, float], None],
    cancel: str,
    earlier: int,
) -> None:
    now = time.time()
    for number in range(earlier):
        began(scene, now - 9000 + 100 * number, f"{number}", number)
        told(scene, now - 8900, EventKind.ATTEMPT_ENDED, attempt=number, outcome="node_failure")
    began(scene, now - 5000, "5", earlier)
    if cancel == "hpc-train":
        asked(scene, now - 4990)
    resumed(scene, now - 1)
    scene.slurm.says("sacct", f"CANCELLED by {os.getuid()}")
    assert supervise(scene, monkeypatch, lambda _: SAVED) == RankExit.FINISHED
    events = read_events(scene.run.events)
    end = end_of(events)
    assert end is not None
    assert end.get("state") == "completed"
    last = attempts_in(events)[-2:]
    assert [it.outcome for it in last] == [Outcome.CANCELLED, Outcome.COMPLETED]
    assert last[0].ended == pytest.approx(now - 4960)
    assert last[0].decision == ""
