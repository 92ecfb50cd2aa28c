"""A job that is ended while its nodes are checked: the probes die with it, and no node is bad."""

from __future__ import annotations

import time

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.verdict import Verdict
from hpc_train.runs.bad_nodes import read_bad_nodes
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.supervisor import node_check
from tests.supervisor.attempted import RUNNING, Scene, scene

__all__ = ["scene"]

SAYS = "the connection broke: closed by the other side"
NO = Verdict(
    verdict="no-go",
    findings=(Finding("n2", "probe", "alive", "fail", SAYS),),
    bad_nodes=("n2",),
)
ENDING = RUNNING.replace("RUNNING", "CANCELLED")
PREEMPTED = ENDING.replace("PreemptTime=None", "PreemptTime=2026-11-26T10:00:00")


def check(scene: Scene, monkeypatch: pytest.MonkeyPatch, job: str, *, asked: bool = False) -> None:
    """The attempt up to its end before the ranks, with a preflight that says no."""
    scene.slurm.says("scontrol", job)
    scene.environ |= {"XDG_STATE_HOME": str(scene.run.path / "state")}
    attempt = scene.attempt()
    if asked:
        event = Event(time.time(), EventKind.CANCEL_REQUESTED, {"by": "0"})
        monkeypatch.setattr(
            node_check, "run_preflight", lambda *_: append_event(scene.run.events, event) or NO
        )
    else:
        monkeypatch.setattr(node_check, "run_preflight", lambda *_: NO)
    checked = node_check.check_nodes(attempt)
    assert checked.refused is not None
    attempt.refuse(checked.refused)


def remembered(scene: Scene) -> list[str]:
    cluster = scene.allocation.cluster
    return [it.node for it in read_bad_nodes(scene.environ, cluster, time.time())]


@pytest.mark.parametrize(
    ("job", "asked", "outcome"),
    [
        (ENDING, False, Outcome.CANCELLED),  # scancel
        (RUNNING, True, Outcome.CANCELLED),  # hpc-train cancel
        (PREEMPTED, False, Outcome.PREEMPTED),
        (RUNNING.replace("Restarts=0", "Restarts=1"), False, Outcome.PREEMPTED),  # a requeue
    ],
)
def test_it_blames_no_node(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, job: str, asked: bool, outcome: Outcome
) -> None:
    check(scene, monkeypatch, job, asked=asked)
    assert (scene.ended().outcome, scene.ended().blamed) == (outcome, ())
    assert remembered(scene) == []
    assert EventKind.PREFLIGHT not in [event.kind for event in read_events(scene.run.events)]


def test_of_a_job_that_goes_on_it_does(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    check(scene, monkeypatch, RUNNING)
    assert (scene.ended().outcome, scene.ended().blamed) == (Outcome.NODE_FAILURE, ("n2",))
    assert remembered(scene) == ["n2"]
