"""`hpc-train list`: how wide it is, its colours, and the words of WHY."""

from __future__ import annotations

import json
import re
import time

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import beats, on_terminal, tell


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize("name", ["net", "a-long-name-" * 5])
def test_on_a_narrow_terminal_the_id_the_state_and_the_names_beginning_are_left(
    slurm, make_run, tmp_path, columns, name
):
    run = make_run(3, ended=False)
    run.path.parent.rename(tmp_path / "runs" / name)
    moved = RunDir(tmp_path / "runs" / name / run.run_id)
    beats(moved, step=400, steps=10000, steps_per_s=2)
    slurm.says("3|RUNNING|None|N/A")
    shown = on_terminal("list", "--runs-dir", str(tmp_path / "runs"), columns=columns)
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in shown.splitlines()]
    assert max(map(len, lines)) <= columns
    assert f"{run.run_id}  running" in lines[1]
    assert lines[1].startswith(name[:4] if name != "net" else "net ")
    assert ("400/10000" in lines[1]) == (columns == 60)


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_on_a_terminal_the_table_is_no_wider_and_says_what_matters(
    slurm, make_run, tmp_path, columns
):
    long = make_run(3, ended=False)
    long.path.parent.rename(tmp_path / "runs" / ("a-long-name-" * 5))
    make_run(4, ended=True)
    slurm.says("3|PENDING|PartitionTimeLimit|N/A")
    text = on_terminal("list", "--runs-dir", str(tmp_path / "runs"), columns=columns, NO_COLOR="1")
    lines = text.splitlines()
    assert "\x1b[3" not in text
    assert max(len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) for line in lines) <= columns
    assert long.run_id in lines[2]
    assert "a-long-name" in lines[2]
    assert "slurm.time" in lines[2]
    assert ("SUBMITTED" in text) == (columns == 200)
    assert ("JOB" in text) == (columns >= 120)


def test_in_a_pipe_nothing_is_cut_and_nothing_is_coloured(hpc, slurm, make_run, tmp_path):
    run = make_run(3, ended=False)
    run.path.parent.rename(tmp_path / "runs" / ("a-long-name-" * 5))
    slurm.says("3|PENDING|PartitionTimeLimit|N/A")
    text = hpc("list").out
    assert "a-long-name-" * 5 in text
    assert "is longer than its partition allows: cancel it, change the key, submit again\n" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("Resources", "pending: Resources (nodes that it could have are taken by other jobs)"),
        ("Priority", "pending: Priority (other jobs are in front of it)"),
        ("BeginTime", "BeginTime (not before its slurm.begin; after a requeue"),
        ("Dependency", "another job has to end first: --after, or slurm.dependency"),
        ("QOSMaxCpuPerUserLimit", "a limit of its QOS (slurm.qos), which other jobs use up"),
        ("AssocGrpGRES", "a limit of your account (slurm.account), which other jobs use up"),
        ("JobHeldUser", "pending: somebody holds the job (scontrol hold): `scontrol release 3`"),
        ("JobHeldAdmin", "an administrator holds the job"),
        ("launch failed requeued held", "Slurm could not start the job on its nodes"),
        ("launch failed requeued held", "`scontrol release 3` lets it go"),
        ("job requeued in held state", "pending: the job was put back into the queue and is held"),
        ("job requeued in held state", "slurm.conf): `scontrol release 3` lets it go"),
        ("QOSMaxNodePerJobLimit", "slurm.nodes is more than your QOS allows"),
    ],
)
def test_what_a_job_waits_for_is_told_in_words(hpc, slurm, make_run, reason, told):
    run = make_run(3, ended=False)
    slurm.says(f"3|PENDING|{reason}|N/A")
    said = hpc("status", run.run_id).out
    assert " ".join(told.split()) in " ".join(said.replace("\n  ", " ").split())
    meant = told.removeprefix(f"pending: {reason} ").removeprefix(f"{reason} ")
    assert meant.removeprefix("pending: ").strip("()") in hpc("list").out


@pytest.mark.parametrize(("days", "told"), [(2, False), (364, True)])
def test_a_start_in_a_year_is_told_to_be_none_and_not_shown(hpc, slurm, make_run, days, told):
    run = make_run(3, ended=False)
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + days * 86400))
    slurm.says(f"3|PENDING|Resources|{start}")
    said = hpc("status", run.run_id).out
    assert (f"{start} (Slurm's estimate)" in said) is not told
    shown = json.loads(hpc("status", run.run_id, "--json").out)["start_estimate"]
    assert shown == ("" if told else start)
    assert ("jobs in front have no time limit" in " ".join(said.split())) is told


def test_states_have_their_colours_on_a_terminal(slurm, make_run, tmp_path):
    make_run(1, ended=True)
    make_run(2, ended=False)
    make_run(3, ended=False)
    slurm.says("2|RUNNING|None|N/A")
    text = on_terminal("list", "--runs-dir", str(tmp_path / "runs"), columns=120)
    assert set(re.findall(r"\x1b\[(\d+)m(\w+)", text)) == {
        ("1", "NAME"), ("32", "completed"), ("34", "running"), ("31", "lost"),
    }  # fmt: skip


def test_errors_have_no_colour_either_where_nobody_wants_one():
    said = on_terminal("status", "no-such-run", columns=80, NO_COLOR="1")
    assert "\x1b" not in said
    assert said.startswith("error: ")


def test_the_error_comes_first_in_the_narrow_cell_that_tells_why(hpc, make_run) -> None:
    run = make_run(1, ended=False)
    reason = "rank 1 on node-a.site failed at step 7: ValueError: bad label (nets.py:3)"
    tell(run, time.time(), EventKind.RUN_ENDED, attempt=0, state="failed", reason=reason)
    assert "  rank 1: ValueError: bad label (nets.py:3)" in hpc("list").out
    assert "rank 1 on node-a.site failed at step 7" in hpc("status", run.run_id).out
