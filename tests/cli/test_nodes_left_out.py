"""`hpc-train nodes`: also what a run leaves out of its own job after a node failure."""

from __future__ import annotations

import json
import os
import time

import pytest

from hpc_train.runs.bad_nodes import BadNode, remember
from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import end, tell

WHY = "Slurm took node2 from the job (node failure; sinfo -R may say why)"


def fail(run: RunDir, *nodes: str) -> None:
    """Attempt 0 ends by the failure of nodes; the run goes on without them."""
    now = time.time() - 60
    failed = {"outcome": "node_failure", "reason": WHY, "blamed": list(nodes)}
    tell(run, now, EventKind.ATTEMPT_ENDED, attempt=0, **failed)
    because = f"node failure: goes on from step 178, without {', '.join(nodes)}"
    decided = {"action": "requeue", "reason": because, "exclude": list(nodes)}
    tell(run, now, EventKind.DECIDED, attempt=0, **decided)


def job(number: int, state: str) -> str:
    return f"{number}|{state}|None|N/A|N/A||"


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_node_that_a_run_leaves_out_is_listed_with_that_run(hpc, slurm, make_run, state) -> None:
    """`no node is left out`, while status said `goes on without node2`."""
    run, other = make_run(4, ended=False), make_run(5, ended=False)
    fail(run, "node2", "node7")
    slurm.says(job(4, state), job(5, state))
    head, *rows = hpc("nodes").out.splitlines()
    assert head.split()[1:] == ["NODE", "SINCE", "UNTIL", "RUN", "WHY"]
    assert [row.split()[0] for row in rows] == ["node2", "node7"]
    for row in rows:
        assert f"the run's end  {run.run_id}  {WHY}" in row
    document = json.loads(hpc("nodes", "--json").out)
    assert document["nodes"] == []
    assert [(it["node"], it["run"]) for it in document["of_runs"]] == [
        ("node2", run.run_id), ("node7", run.run_id)
    ]  # fmt: skip
    assert other.run_id not in str(document)


def test_forget_names_the_run_that_holds_it_and_what_to_type(hpc, slurm, make_run) -> None:
    run = make_run(4, ended=False)
    fail(run, "node2")
    slurm.says(job(4, "RUNNING"))
    said = hpc("nodes", "--forget", "node2")
    assert said.code == 2
    error, fix = said.err.splitlines()
    assert error.endswith(
        f"node2 is left out by the job of the run {run.run_id} alone, until it ends; other runs"
        " may have it"
    )
    assert f"hpc-train cancel {run.run_id}, and once it is cancelled hpc-train resume " in fix
    assert "node9 is not left out" in hpc("nodes", "--forget", "node9").err


@pytest.mark.parametrize("how", ["ended", "ended by Slurm", "resumed"])
def test_a_run_that_has_no_such_job_any_more_leaves_none_out(hpc, slurm, make_run, how) -> None:
    run = make_run(4, ended=False)
    fail(run, "node2")
    if how == "ended":
        end(run, time.time())
    if how == "resumed":
        tell(run, time.time(), EventKind.SUBMITTED, job_id="6", backend="slurm")
    slurm.says(job(4, "CANCELLED"), job(6, "PENDING"))
    assert hpc("nodes").err == "no node is left out\n"
    assert "node2 is not left out" in hpc("nodes", "--forget", "node2").err


def test_one_that_is_remembered_is_forgotten_as_before(hpc, slurm, make_run) -> None:
    now = time.time()
    remember(os.environ, "c", [BadNode("node3", "no GPU", "r1", now, now + 3600)])
    fail(make_run(4, ended=False), "node2")
    slurm.says(job(4, "RUNNING"))
    assert hpc("nodes").out.splitlines()[1].split()[:2] == ["c", "node3"]
    said = hpc("nodes", "--forget", "node3")
    assert (said.code, "node3" in said.out, "node2" in said.out) == (0, False, True)
