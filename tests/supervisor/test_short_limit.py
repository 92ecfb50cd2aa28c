"""A job whose limit was shortened by hand to less than its script's signal comes before it."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import Evidence
from hpc_train.plan.states import Outcome
from tests.supervisor.test_stopcause import told

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
