"""A cancel holds, whenever it comes: no attempt follows, and no node and no budget pays for it."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

import pytest

from hpc_train.config.schema import RequeueConfig
from hpc_train.plan.policy import AttemptSummary, SchedulerOptions, decide
from hpc_train.plan.states import Action, Outcome, RankExit, RunState
from hpc_train.runs.events import Event, EventKind, append_event, end_of, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.supervisor import run as supervisor
from hpc_train.supervisor.attempt import Attempt
from hpc_train.supervisor.orphaned_attempt import close_unfinished
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.supervisor.attempted import Scene, beat, say, scene

__all__ = ["scene"]

SCANCELLED = "JobState=COMPLETING Requeue=1 Restarts=0 PreemptTime=None"
PREEMPTED = "JobState=COMPLETING Requeue=1 Restarts=0 PreemptTime=2026-11-21T07:48:36"
ASKED = "`hpc-train cancel` asked for it"
# What srun 22.05 prints where its tasks stay for longer than KillWait; it ends with 0.
GAVE_UP = (
    'echo "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.'
    '\nsrun: error: Timed out waiting for job step to complete" >&2; exit 0'
)
NODE_FAILED = AttemptOutcome(
    outcome=Outcome.NODE_FAILURE, reason="n2 no longer answers", blamed=("n2",)
)


def tell(scene: Scene, kind: EventKind, **data: object) -> None:
    append_event(scene.run.events, Event(time.time(), kind, data))


def ask(scene: Scene) -> None:
    tell(scene, EventKind.CANCEL_REQUESTED, by="me")


def terminate(scene: Scene) -> None:
    scene.job = SCANCELLED
    scene.signals.received[signal.SIGTERM] = 1


# --- the ranks stay, and srun gives them up


@pytest.mark.parametrize("beats", [0, 1, 2])
@pytest.mark.parametrize("is_asked", [True, False])
def test_ranks_that_do_not_leave_undo_no_cancel(scene: Scene, is_asked: bool, beats: int) -> None:
    scene.save(12)
    attempt = scene.attempt()
    for rank in range(beats):
        beat(attempt, 3, rank)
    scene.save(20)
    scene.job = SCANCELLED
    scene.signals.first_at = time.monotonic() - 30
    wish = f"{during(scene)}; " if is_asked else ""
    ending = scene.carry_out(attempt, f"{wish}{GAVE_UP}").ending
    assert ending.outcome is Outcome.CANCELLED
    who = ASKED if is_asked else "the job was cancelled (scancel)"
    how = r"the ranks did not leave within (3\d) s and were killed; saved at step 20"
    # From the signal on, so with what it takes to carry the attempt out here.
    assert re.fullmatch(f"{re.escape(who)}; {how}", ending.reason), ending.reason
    assert ending.blamed == ()


def test_ranks_that_do_not_leave_in_a_preemption_are_no_fault_of_a_node(scene: Scene) -> None:
    attempt = scene.attempt()
    beat(attempt, 3)
    scene.job = PREEMPTED
    scene.environ["SLURMD_NODENAME"] = "n1"  # what ranks have left there is seen at once
    assert scene.carry_out(attempt, GAVE_UP).ending.outcome is Outcome.PREEMPTED


def test_ranks_that_saved_and_left_were_not_killed(scene: Scene) -> None:
    attempt = scene.attempt()
    say(attempt, 0, RankExit.SAVED, kind="saved", step=42)
    assert scene.carry_out(attempt, f"{during(scene)}; exit 75").ending.reason == ASKED


def during(scene: Scene) -> str:
    """In a launcher: `hpc-train cancel` comes while it runs."""
    wish = '{"time": 1, "event": "cancel_requested", "by": "me"}'
    return f"echo '{wish}' >> '{scene.run.events}'"


def test_a_training_that_is_complete_is_not_cancelled_by_what_came_too_late(scene: Scene) -> None:
    attempt = scene.attempt()
    say(attempt, 0, 0)
    assert scene.carry_out(attempt, f"{during(scene)}; exit 0").ending.outcome is Outcome.COMPLETED


def test_a_cancelled_script_that_ends_with_0_before_a_step_is_no_error(scene: Scene) -> None:
    attempt = scene.attempt()
    ending = scene.carry_out(attempt, f"{during(scene)}; exit 0").ending
    assert (ending.outcome, ending.reason) == (Outcome.CANCELLED, ASKED)


def test_a_supervisor_that_missed_the_signal_sees_that_slurm_ends_the_job(scene: Scene) -> None:
    attempt = scene.attempt()
    scene.job = SCANCELLED
    ending = scene.carry_out(attempt, "exit 1").ending
    assert (ending.outcome, ending.reason) == (Outcome.CANCELLED, "the job was cancelled (scancel)")


# --- before the ranks


@pytest.mark.parametrize("cancel", [ask, terminate])
def test_a_cancel_before_the_launch_starts_no_rank(
    scene: Scene, cancel: Callable[[Scene], None]
) -> None:
    attempt = scene.attempt()
    cancel(scene)
    assert scene.carry_out(attempt, "exit 0").ending.outcome is Outcome.CANCELLED
    assert scene.slurm.asked("srun") == []


def test_a_preflight_that_a_cancel_has_ended_blames_no_node(scene: Scene) -> None:
    attempt = scene.attempt()
    ask(scene)
    ending = attempt.refuse(NODE_FAILED).ending
    assert (ending.outcome, ending.blamed) == (Outcome.CANCELLED, ())


def test_a_cancel_that_came_while_the_job_was_about_to_begin_counts(scene: Scene) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")
    ask(scene)
    assert scene.attempt().cancel_requested()


def test_a_resumed_run_trains_though_its_submission_is_not_written_down_yet(scene: Scene) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="6", backend="slurm")
    tell(scene, EventKind.ATTEMPT_STARTED, attempt=0, job_id="6")
    ask(scene)
    attempt = scene.attempt()
    assert not attempt.cancel_requested()
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")
    assert not attempt.cancel_requested()


def test_an_attempt_whose_supervisor_was_killed_in_a_cancel_is_not_followed(scene: Scene) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")
    tell(scene, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", restarts=0)
    ask(scene)
    scene.run.attempt(0).path.mkdir(parents=True)
    scene.slurm.says("squeue")
    closed = close_unfinished(scene.run, scene.allocation, {}, SupervisorLog())
    assert closed is not None
    assert closed[1].outcome is Outcome.CANCELLED


# --- between two attempts


def ended(outcome: Outcome) -> AttemptSummary:
    return AttemptSummary(attempt=0, outcome=outcome, ended=1.0, first_step=0, saved_step=5)


@pytest.mark.parametrize("outcome", [it for it in Outcome if it.follows.state is None])
def test_after_a_cancel_nothing_follows_any_outcome(outcome: Outcome) -> None:
    may = SchedulerOptions(can_requeue=True, can_resubmit=True, now=1.0)
    gone = SchedulerOptions(can_requeue=True, can_resubmit=True, now=1.0, cancelled="by you")
    assert decide(ended(outcome), [], RequeueConfig(), may).action is not Action.STOP
    decision = decide(ended(outcome), [], RequeueConfig(), gone)
    assert (decision.action, decision.state) == (Action.STOP, RunState.CANCELLED)
    assert decision.reason == "by you"


def supervise(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, ends: Callable[[Attempt], AttemptOutcome]
) -> int:
    """The supervisor of the scene's job, whose attempts end as they are told to."""
    scene.run.plan.write_text(scene.plan.to_json())

    def made_up(attempt: Attempt) -> supervisor.AttemptResult:
        return attempt._record(ends(attempt), supervisor.StopCause(None))

    monkeypatch.setattr(supervisor, "_check_and_train", made_up)
    monkeypatch.setattr(supervisor.SupervisorSignals, "install", lambda _self, **_more: None)
    environ = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n1,n2",
        "SLURM_JOB_PARTITION": "train",
        **scene.environ,
    }
    scene.slurm.says("sinfo", "n1 idle", "n2 idle", "n3 idle")
    scene.slurm.says("scontrol", scene.job)
    scene.slurm.says("scancel")
    scene.slurm.says("squeue")
    return supervisor.supervise(scene.run, environ, batch=True)


def test_a_cancel_between_the_outcome_and_what_follows_ends_the_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")

    def fails(_attempt: Attempt) -> AttemptOutcome:
        ask(scene)
        return NODE_FAILED

    assert supervise(scene, monkeypatch, fails) == 12
    end = end_of(read_events(scene.run.events))
    assert end is not None
    assert (end.get("state"), end.get("reason")) == ("cancelled", ASKED)
    assert not [line for line in scene.slurm.asked("scontrol") if "requeue" in line]


def test_a_cancel_that_met_the_job_on_its_way_into_the_queue_takes_it_out_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")

    def submitted(*_options: object, **_more: object) -> str:
        ask(scene)
        return "8"

    monkeypatch.setattr(supervisor, "go_on", submitted)
    assert supervise(scene, monkeypatch, lambda _: NODE_FAILED) == 12
    assert scene.slurm.asked("scancel") == ["scancel 8"]
    events = read_events(scene.run.events)
    assert newest_job_id(events) == "8"
    end = end_of(events)
    assert end is not None
    assert end.get("state") == "cancelled"


def test_a_node_failure_that_nobody_has_cancelled_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(scene, EventKind.SUBMITTED, job_id="7", backend="slurm")
    monkeypatch.setattr(supervisor, "go_on", lambda *_, **__: "7")
    assert supervise(scene, monkeypatch, lambda _: NODE_FAILED) == RankExit.SAVED
    assert scene.slurm.asked("scancel") == []
