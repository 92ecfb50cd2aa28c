"""A job whose limit was shortened by hand to less than its script's signal comes before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import Evidence
from hpc_train.plan.states import Outcome
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.stopcause import AskedTime
from tests.supervisor.test_stopcause import told
from tests.training.launched import make_plan

BEGAN = "JobState=RUNNING Requeue=1 Restarts=0 StartTime=2026-11-21T07:45:00 PreemptTime=None"
NEAR = "the job's time limit came near"
SHORT = "the job's limit, {}, is no longer than the lead of its script's signal, 120 s"
TODO = (
    "render it anew: hpc-train render CFG --time {0}; or sbatch --time={0} --signal=USR2@{1} FILE"
)


@pytest.mark.parametrize(
    ("limit", "after", "reason"),
    [
        ("00:02:00", "45:01", f"{SHORT.format('0:02:00')} ({TODO.format('0:02:00', 30)})"),
        ("00:01:00", "45:59", f"{SHORT.format('0:01:00')} ({TODO.format('0:01:00', 15)})"),
        ("00:02:00", "46:01", NEAR),  # sbatch was given another --signal as well
        ("00:02:01", "45:01", NEAR),  # there was time, if hardly any
        ("00:05:00", "47:30", NEAR),
    ],
)
def test_a_limit_that_leaves_no_time_before_the_signal_is_told(
    limit: str, after: str, reason: str
) -> None:
    """It was told as a rank that SIGUSR2 had killed, with a fix that helps no such job."""
    now = f"2026-11-21T07:{after}"
    cause = told(f"{BEGAN} TimeLimit={limit}", terminated=False, now=now)
    assert (cause.outcome, cause.reason) == (Outcome.TIMEOUT, reason)


@pytest.mark.parametrize("limit", ["UNLIMITED", "365-00:00:00", "Partition_Limit"])
def test_a_job_without_a_limit_has_no_short_one(limit: str) -> None:
    cause = told(f"{BEGAN} TimeLimit={limit}", terminated=False, now="2026-11-21T07:45:01")
    assert cause.outcome is None


CHANGED = (
    "the job's limit was changed to {}, and 0:20:00 was asked for (hpc-train cancel 2026-9cd4, then"
    " hpc-train resume 2026-9cd4 --time 0:20:00)"
)
SUBMITTED = AskedTime(lead_s=120, limit_s=1200, run="2026-9cd4")


@pytest.mark.parametrize(
    ("by", "limit", "after", "reason"),
    [
        (SUBMITTED, "00:01:00", "45:30", CHANGED.format("0:01:00")),
        (SUBMITTED, "00:12:00", "55:30", CHANGED.format("0:12:00")),
        (SUBMITTED, "00:20:00", "63:01", NEAR),
        (SUBMITTED, "00:21:00", "64:01", NEAR),  # Slurm rounds up, or somebody has lengthened it
        (replace(SUBMITTED, limit_s=None), "00:12:00", "55:30", NEAR),  # that of the partition
        (replace(SUBMITTED, run=""), "00:12:00", "55:30", NEAR),  # sbatch --time FILE
    ],
)
def test_a_limit_that_somebody_has_shortened_is_told_with_what_was_asked_for(
    by: AskedTime, limit: str, after: str, reason: str
) -> None:
    """It was told as a rendered script's, with `hpc-train render`, of a run that was submitted."""
    minutes, seconds = map(int, after.split(":"))
    now = f"2026-11-21T{7 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    cause = told(f"{BEGAN} TimeLimit={limit}", terminated=False, now=now, by=by)
    assert (cause.outcome, cause.reason) == (Outcome.TIMEOUT, reason)


def test_what_was_asked_for_is_the_plans_unless_slurm_may_choose(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    made = make_plan(tmp_path)
    slurm = replace(made.slurm, options=[("time", "0:20:00")], signal_lead_s=60)
    plan = replace(made, slurm=slurm)
    assert AskedTime.of(plan, run) == AskedTime(60, 1200, "")
    run.config.write_text("name: x")
    assert AskedTime.of(plan, run) == AskedTime(60, 1200, tmp_path.name)
    shorter = replace(slurm, options=[*slurm.options, ("time-min", "5")])
    assert AskedTime.of(replace(plan, slurm=shorter), run).limit_s is None
    assert AskedTime.of(replace(plan, slurm=replace(slurm, options=[])), run).limit_s is None


def test_diagnose_has_what_to_type_for_a_limit_that_was_changed() -> None:
    logs = ReadLogs()
    words = f"timeout: {CHANGED.format('0:01:00')}; saved at step 83"
    logs.reader.feed_history(words, Evidence(file="events.jsonl", line=3, text=words))
    (found,) = logs.findings()
    assert (found.name, found.is_known) == ("changed_limit", True)
    assert found.fix == "hpc-train cancel 2026-9cd4, then hpc-train resume 2026-9cd4 --time 0:20:00"


def test_diagnose_names_what_to_write_for_that_limit() -> None:
    logs = ReadLogs()
    words = f"timeout: {SHORT.format('0:02:00')}; rank 0 on n1 was killed by SIGUSR2"
    logs.reader.feed_history(words, Evidence(file="events.jsonl", line=3, text=words))
    (found,) = logs.findings()
    assert (found.name, found.is_known) == ("short_limit", True)
    assert found.cause == f"{SHORT.format('0:02:00')}: it was told to save and leave as it began"
    assert found.fix.endswith("hpc-train render CFG --time 0:02:00")  # of an older version's run


def test_diagnose_has_the_fix_that_the_reason_names() -> None:
    logs = ReadLogs()
    todo = TODO.format("0:02:00", 30)
    words = f"timeout: {SHORT.format('0:02:00')} ({todo}); saved at step 256"
    logs.reader.feed_history(words, Evidence(file="events.jsonl", line=3, text=words))
    (found,) = logs.findings()
    assert found.cause == f"{SHORT.format('0:02:00')}: it was told to save and leave as it began"
    assert found.fix == f"{todo}; or a longer sbatch --time than that lead"
