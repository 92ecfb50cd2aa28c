"""Preempted, out of time or cancelled: told apart by what scontrol printed in each case."""

from __future__ import annotations

import re
import time

import pytest

from hpc_train.errors import SlurmError
from hpc_train.plan.states import Outcome
from hpc_train.slurm.jobs import JobDetails
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.stopcause import AskedTime, StopCause, stop_cause

PLACE = Allocation(backend="slurm", job_id="1", nodes=("node1",))
LOCAL = Allocation(backend="local", job_id="77", nodes=("host/0",))
# Recorded on Slurm 22.05.8, inside the batch step that got SIGTERM.
CANCELLED = (
    "JobState=COMPLETING Reason=None Requeue=1 Restarts=0 TimeLimit=365-00:00:00"
    " StartTime=2026-11-21T07:47:27 EndTime=2026-11-21T07:47:28 PreemptTime=None"
)
PREEMPTED_IN_GRACE = (
    "JobState=RUNNING Requeue=1 Restarts=0 TimeLimit=365-00:00:00 StartTime=2026-11-21T07:48:34"
    " EndTime=2026-11-21T07:48:40 PreemptTime=2026-11-21T07:48:36"
)
REQUEUED_BY_SLURM = "JobState=COMPLETING Requeue=1 Restarts=1 TimeLimit=365-00:00:00"
PREEMPTED_UNDER_CANCEL = (
    "JobState=COMPLETING Requeue=0 Restarts=0 TimeLimit=365-00:00:00"
    " StartTime=2026-11-21T07:48:17 PreemptTime=2026-11-21T07:48:19"
)


def told(
    text: str, allocation: Allocation = PLACE, now: str = "2026-11-21T07:48:00", **flags
) -> StopCause:
    fields = dict(re.findall(r"(\w+)=(\S+)", text))
    asked_time = flags.pop("by", AskedTime(lead_s=120))
    flags = {"told_to_cancel": False, "stop_file": False, "terminated": True, **flags}
    return stop_cause(
        allocation,
        asked=asked_time,
        details=lambda _job: JobDetails(fields),
        now=time.mktime(time.strptime(now, "%Y-%m-%dT%H:%M:%S")),
        **flags,
    )


@pytest.mark.parametrize(
    ("text", "outcome", "requeued"),
    [
        (CANCELLED, Outcome.CANCELLED, False),
        (PREEMPTED_IN_GRACE, Outcome.PREEMPTED, False),
        (REQUEUED_BY_SLURM, Outcome.PREEMPTED, True),
        (PREEMPTED_UNDER_CANCEL, Outcome.PREEMPTED, False),
    ],
)
def test_slurms_own_words_tell_the_cause(text: str, outcome: Outcome, requeued: bool) -> None:
    cause = told(text)
    assert (cause.outcome, cause.requeued) == (outcome, requeued)


def test_a_job_without_requeue_is_known_to_need_a_fresh_submission() -> None:
    assert not told(PREEMPTED_UNDER_CANCEL).may_requeue


def test_a_job_near_its_limit_ran_out_of_time() -> None:
    text = "Requeue=1 Restarts=0 TimeLimit=00:05:00 StartTime=2026-11-21T07:43:30 PreemptTime=None"
    assert told(text, terminated=False).outcome is Outcome.TIMEOUT


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("JobState=COMPLETING Reason=None", Outcome.CANCELLED),  # scancel
        ("JobState=CANCELLED Reason=None", Outcome.CANCELLED),
        ("JobState=COMPLETING Reason=TimeLimit", Outcome.TIMEOUT),
        ("JobState=RUNNING Reason=None", Outcome.TIMEOUT),  # told by USR2
    ],
)
@pytest.mark.parametrize("left", ["02:59", "00:10", "00:00"])
def test_a_cancel_shortly_before_the_limit_is_no_limit(
    state: str, left: str, outcome: Outcome
) -> None:
    times = "TimeLimit=00:10:00 StartTime=2026-11-21T07:45:00 PreemptTime=None"
    minutes, seconds = map(int, left.split(":"))
    now = f"2026-11-21T07:{54 - minutes}:{60 - seconds}" if seconds else "2026-11-21T07:55:00"
    cause = told(f"{state} Requeue=1 Restarts=0 {times}", now=now)
    assert cause.outcome is outcome


def test_our_own_cancel_needs_no_question_and_a_local_stop_is_a_cancel() -> None:
    assert told(PREEMPTED_IN_GRACE, told_to_cancel=True).outcome is Outcome.CANCELLED
    assert told("", allocation=LOCAL).outcome is Outcome.CANCELLED


def test_a_controller_that_is_away_leaves_the_cause_open() -> None:
    def away(_job: str) -> JobDetails:
        raise SlurmError("Unable to contact slurm controller")

    cause = stop_cause(
        PLACE,
        told_to_cancel=False,
        stop_file=False,
        terminated=True,
        asked=AskedTime(lead_s=60),
        details=away,
        now=0.0,
    )
    assert cause.outcome is None
    assert "Unable to contact" in cause.reason


def test_a_job_whose_restarts_slurm_does_not_tell_was_not_put_back() -> None:
    text = "JobState=RUNNING Requeue=1 TimeLimit=365-00:00:00 StartTime=2026-11-21T07:48:34"
    for said in (text, f"{text} Restarts=(null)", f"{text} Restarts=0"):
        cause = told(f"{said} PreemptTime=None", terminated=False)
        assert cause == StopCause(None, "", requeued=False, may_requeue=True)


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        ("07:51:59", None),  # 3 min 1 s before the end: no signal of Slurm's comes so early
        ("07:52:00", Outcome.TIMEOUT),  # 120 s of lead, and the minute that Slurm may be early
        ("07:52:01", Outcome.TIMEOUT),
        ("07:55:30", Outcome.TIMEOUT),  # past the end, within OverTimeLimit
    ],
)
def test_the_limit_came_near_from_the_earliest_signal_on(now: str, outcome: Outcome | None) -> None:
    text = "Requeue=1 Restarts=0 TimeLimit=00:10:00 StartTime=2026-11-21T07:45:00 PreemptTime=None"
    assert told(text, terminated=False, now=f"2026-11-21T{now}").outcome is outcome
