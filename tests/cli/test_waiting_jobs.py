"""A job that waits: its run's own keys, times and nodes are told, and what keeps its steps."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm, tell
from tests.cli.run_of_yesterday import project, saved

__all__ = ["project"]


@pytest.fixture
def waits(hpc, slurm: Slurm, project: Path):
    """`waits("slurm.begin=16:00", reason="BeginTime")` gives a run that does, and its status."""

    def submit(*words: str, reason: str, in_s: float | None = None) -> tuple[RunDir, str]:
        said = hpc("submit", "cfg.yaml", "--json", *words)
        assert said.code == 0, said
        run = RunDir(Path(json.loads(said.out)["run_dir"]))
        return run, shown(hpc, slurm, run, reason, in_s)

    return submit


def shown(hpc, slurm: Slurm, run: RunDir, reason: str, in_s: float | None = None) -> str:
    """The status of a run whose job waits so, as one line."""
    slurm.says(f"7|PENDING|{reason}|{'N/A' if in_s is None else at(in_s)}|N/A")
    return " ".join(hpc("status", str(run.path)).out.split())


def at(in_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + in_s))


def trained(run: RunDir, steps: int = 12) -> RunDir:
    """An attempt of job 7 that has saved, and was requeued."""
    then = time.time() - 1000
    tell(run, then, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", nodes=["n1"])
    end = {"attempt": 0, "last_step": steps, "saved_step": steps, "reason": "preempted by Slurm"}
    tell(run, then, EventKind.ATTEMPT_ENDED, outcome="preempted", **end)
    tell(run, then, EventKind.WENT_ON, attempt=0, job_id="7", action="requeue")
    if steps:
        saved(run, steps)
    return run


def test_a_job_that_waits_for_its_begin_says_until_when(waits) -> None:
    _, said = waits("slurm.begin=now+1hour", reason="BeginTime", in_s=3600)
    assert "pending: BeginTime (not before its slurm.begin, 20" in said
    assert "requeue" not in said


def test_a_requeued_job_waits_for_slurm_and_not_for_a_begin(hpc, slurm, waits) -> None:
    run, said = waits(reason="BeginTime", in_s=100)
    told = "BeginTime (Slurm waits for about two minutes after a requeue: until 20"
    assert told in said
    assert "slurm.begin" not in said
    # With a begin that has passed, in the job's first life.
    begins, _ = waits("slurm.begin=now+1hour", reason="BeginTime", in_s=3600)
    assert told in shown(hpc, slurm, trained(begins), "BeginTime", 100)
    # `scontrol update StartTime=` is no requeue.
    assert "pending: BeginTime (not before 20" in shown(hpc, slurm, run, "BeginTime", 86400)
    far = shown(hpc, slurm, run, "BeginTime", 400 * 86400)
    assert "no time limit" not in far
    assert "(Slurm's estimate)" in far


@pytest.mark.parametrize(
    ("reason", "why", "way"),
    [
        ("JobHeldUser", "somebody holds the job (scontrol hold)", "`scontrol release 7` lets"),
        ("JobHeldAdmin", "an administrator holds the job", "ask them for `scontrol release 7`"),
        ("PartitionTimeLimit", "slurm.time is longer than its partition allows", "change the"),
    ],
)
def test_resume_of_a_run_that_does_not_start_says_why_and_what_lets_it(
    hpc, waits, reason, why, way
) -> None:
    """It said that the run needs nothing."""
    run, _ = waits(reason=reason)
    said = hpc("resume", run.run_id)
    assert said.code == 1
    error, hint = said.err.splitlines()
    assert f"is pending as job 7, and does not start: {why}" in error
    assert way in hint
    assert "needs nothing" not in said.err


def test_resume_of_a_run_that_waits_as_others_do_needs_nothing(hpc, waits) -> None:
    run, _ = waits(reason="Priority")
    assert "it needs nothing: hpc-train status" in hpc("resume", run.run_id).err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("slurm.nodelist=n9",), "pending: slurm.nodelist can not be satisfied: cancel it, change"),
        (
            ("slurm.constraint=ib", "slurm.exclude=n1"),
            "slurm.constraint or slurm.exclude can not be satisfied",
        ),
        ((), "what slurm asks for (nodes, GPUs, CPUs, memory) can not be satisfied: cancel it"),
    ],
)
def test_constraints_that_cannot_be_met_are_those_of_the_run(waits, words, told) -> None:
    _, said = waits(*words, reason="BadConstraints")
    assert told in said


def test_a_run_that_has_steps_keeps_them_by_a_resume_with_another_key(hpc, slurm, waits) -> None:
    run, said = waits(reason="PartitionTimeLimit")
    assert "cancel it, change the key, submit again" in said
    said = shown(hpc, slurm, trained(run), "PartitionTimeLimit")
    way = f"`hpc-train cancel {run.run_id}`, then `hpc-train resume {run.run_id} slurm.time=VALUE`"
    assert f"slurm.time is longer than its partition allows: {way}, which keeps its steps" in said
    said = shown(hpc, slurm, run, "PartitionConfig")
    assert f"resume {run.run_id} slurm.KEY=VALUE`" in said
    # That works.
    slurm.has("scancel", "exit 0")
    assert hpc("cancel", run.run_id).code == 0
    slurm.says("7|CANCELLED|None|N/A|N/A")
    assert hpc("resume", run.run_id, "slurm.time=0:05:00", "--dry-run").code == 0
    other, _ = waits(reason="Priority")
    said = shown(hpc, slurm, trained(other, steps=0), "PartitionTimeLimit")
    assert "cancel it, change the key, submit again" in said


OUT = "p*|n1|idle|none\np*|n2|drained*|fan: broken\np*|n3|down|no power\nq|n3|down|no power"


@pytest.mark.parametrize(
    ("words", "nodes", "told"),
    [
        (
            ("slurm.nodelist=n[1-2]",),
            "n2",
            (
                'slurm.nodelist needs nodes that are down or drained (n2): n2 is drained ("fan:'
                ' broken"); it starts when that has passed, or cancel it'
            ),
        ),
        (
            (),
            "n[2-3]",
            "slurm.nodes needs nodes that are down or drained (n[2-3]): n[2-3] are",
        ),
        ((), "n1", "slurm.nodes needs nodes that are down or drained (n1): `sinfo -R` says why"),
        ((), "n[2-", "down or drained (n[2-): `sinfo -R` says why"),
    ],
)
def test_nodes_that_cannot_be_had_are_told_with_their_key_and_reason(
    hpc, slurm, waits, words, nodes, told
) -> None:
    run, _ = waits(*words, reason="Priority")
    slurm.has("sinfo", f"printf '%s\\n' {shlex.quote(OUT)}")
    assert told in shown(hpc, slurm, run, f"ReqNodeNotAvail, UnavailableNodes:{nodes}")


def test_nodes_that_a_shape_waits_for_are_told_where_the_others_are_too_few(
    hpc, slurm, waits
) -> None:
    reason = "Nodes required for job are DOWN, DRAINED or reserved for others"
    for words, told in (
        (("slurm.nodelist=n[1-2]",), f'{reason} (n2 is drained ("fan: broken"))'),
        ((), f"{reason} (n[2-3] are down or drained)"),
        (("--nodes", "1"), f"pending: {reason} run"),  # n1 is there: it waits for something else
    ):
        run, _ = waits(*words, reason="Priority")
        slurm.has("sinfo", f"printf '%s\\n' {shlex.quote(OUT)}")
        assert told in shown(hpc, slurm, run, reason)
        first = hpc("diagnose", str(run.path)).out.splitlines()[0]
        assert first.endswith(told.removeprefix("pending: ").removesuffix(" run")), first
        slurm.has("sinfo", "exit 1")


@pytest.mark.parametrize(
    ("dependency", "told"),
    [
        ("afterok:61(unfulfilled)", "slurm.dependency: it waits for job 61 to end well"),
        ("afterany:61_3(unfulfilled)", "slurm.dependency: it waits for job 61_3 to end"),
        (
            "after:5+10(unfulfilled),afternotok:6_*(unfulfilled)",
            "it waits for job 5 to begin, job 6_* to fail",
        ),
        ("afterok:5(unfulfilled)?afterok:6(unfulfilled)", "job 5 to end well or job 6 to end well"),
        ("singleton(unfulfilled)", "it waits for your other jobs of its name to end"),
        ("afterok:5(fulfilled),afterok:6(unfulfilled)", "it waits for job 6 to end well)"),
        ("(null)", "another job has to end first: --after, or slurm.dependency"),
        ("new:9(unfulfilled)", "another job has to end first: --after, or slurm.dependency"),
    ],
)
def test_the_job_that_it_waits_for_is_named(hpc, slurm, waits, dependency: str, told: str) -> None:
    run, _ = waits("slurm.dependency=afterok:61", reason="Dependency")
    slurm.says(f"7|PENDING|Dependency|N/A|N/A|{dependency}")
    said = " ".join(hpc("status", str(run.path)).out.split())
    assert "pending: Dependency (" in said
    assert told in said


@pytest.mark.parametrize(
    ("ends", "dependency", "told"),
    [
        ("61|CANCELLED", "afterok:61(failed)", " (afterok:61, and job 61 has ended as CANCELLED)"),
        ("61|COMPLETED\n61|FAILED", "afterok:61_*(failed)", "job 61_* has ended as FAILED)"),
        ("61|COMPLETED", "afternotok:61(failed)", "and job 61 has ended as COMPLETED)"),
        ("", "afterok:61(failed)", " (afterok:61, and job 61 has ended)"),
        ("61|FAILED", "afterok:61(failed),afterok:5(unfulfilled)", "61 has ended as FAILED):"),
        ("", "", "will never be satisfied: `hpc-train cancel"),
    ],
)
def test_a_dependency_that_is_never_met_is_told_with_the_commands_that_work(
    hpc, slurm, waits, ends: str, dependency: str, told: str
) -> None:
    run, _ = waits("slurm.dependency=afterok:61", reason="Dependency")
    row = f"7|PENDING|DependencyNeverSatisfied|N/A|N/A|{dependency}"
    asks = f"""case "$*" in *%F*) printf '{ends}\\n';; *) echo '{row}';; esac"""
    slurm.has("squeue", asks)
    said = " ".join(hpc("status", str(run.path)).out.split())
    way = f"`hpc-train cancel {run.run_id}`, then `hpc-train resume {run.run_id} "
    assert told in said
    assert "pending: slurm.dependency will never be satisfied" in said
    assert f"{way}slurm.dependency=null`" in said
    refused = hpc("resume", run.run_id)
    assert f"fix: {way}slurm.dependency=null`" in refused.err
    slurm.has("scancel", "exit 0")
    ended = hpc("cancel", run.run_id)
    assert ended.err == f"go on with: hpc-train resume {run.run_id} slurm.dependency=null\n"
    slurm.has("squeue", asks.replace("PENDING", "CANCELLED"))
    go_on = f"go on hpc-train resume {run.run_id} slurm.dependency=null"
    assert " ".join(hpc("status", run.run_id).out.split()).endswith(go_on)
    slurm.has("squeue", "echo '7|CANCELLED|None|N/A|N/A|'")
    assert hpc("resume", run.run_id, "slurm.dependency=null", "--dry-run").code == 0


def test_what_waits_for_another_reason_is_cancelled_with_the_plain_resume(
    hpc, slurm, waits
) -> None:
    run, _ = waits("slurm.dependency=afterok:61", reason="Dependency")
    slurm.says("7|PENDING|Dependency|N/A|N/A|afterok:61(unfulfilled)")
    slurm.has("scancel", "exit 0")
    assert hpc("cancel", run.run_id).err == f"go on with: hpc-train resume {run.run_id}\n"
