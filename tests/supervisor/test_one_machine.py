"""Ranks of a training that are all on this machine, and a variable of the user's for gloo."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.runs.events import EventKind, read_events
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.node_check import Checked, check_nodes
from tests.supervisor.attempted import NODES, Scene, scene

__all__ = ["scene"]


def checked(scene: Scene, mode: str = "quick", **trainer: object) -> Checked:
    """What is found of an attempt on two nodes that are this machine, a rank each."""
    scene.allocation = Allocation(backend="local", job_id="-", nodes=NODES)
    plan = scene.plan
    training = replace(plan.training, trainer={**plan.training.trainer, **trainer})
    preflight = replace(plan.preflight, mode=mode)
    shape = replace(plan.shape, gpus_per_node=0)
    scene.plan = replace(plan, training=training, preflight=preflight, shape=shape)
    return check_nodes(scene.attempt())


def test_an_interface_that_is_not_here_ends_it_before_its_ranks(scene: Scene) -> None:
    scene.environ["GLOO_SOCKET_IFNAME"] = "ib7x"
    found = checked(scene)
    assert found.refused is not None
    assert (found.refused.outcome, found.refused.blamed) == (Outcome.USER_ERROR, ())
    assert "'ib7x': no such interface with an address (there: " in found.refused.reason


@pytest.mark.parametrize(
    ("value", "mode", "trainer"),
    [
        ("", "quick", {}),
        ("lo", "quick", {}),
        ("ib7x", "off", {}),
        ("ib7x", "quick", {"strategy": {"class_path": "nets.Own"}}),
    ],
)
def test_else_nothing_is_looked_at(
    scene: Scene, value: str, mode: str, trainer: dict[str, object]
) -> None:
    scene.environ["GLOO_SOCKET_IFNAME"] = value
    assert checked(scene, mode, **trainer) == Checked(nodes=NODES)
    kinds = [event.kind for event in read_events(scene.run.events)]
    assert EventKind.PREFLIGHT not in kinds
