"""Ray's own reason of an actor's end, and the node that it is about."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import diagnose_logs

PREFIXES = ["", "(Trainer pid=41, ip=10.0.0.9) "]
BLOCK = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "\tclass_name: Trainer",
    "\tactor_id: ab12cd",
    "\tpid: 77",
    "\tnamespace: 4c5e",
    "\tip: 10.0.0.5",
)
MARKED = (
    "(raylet) The node with node id: 9f2 and {}: 10.0.0.7{} has been marked dead because the"
    " detector has missed too many heartbeats from it."
)
DIED = [
    "The actor is dead because its node has died. Node Id: 9f2",
    "The actor died because its node has died. Node Id: 9f2",
]


def told(tmp_path, *lines: str, prefix: str = ""):
    (tmp_path / "a.log").write_text("".join(f"{prefix}{line}\n" for line in lines))
    (found,) = diagnose_logs([str(tmp_path / "a.log")]).findings
    assert "10.0.0.9" not in found.cause + found.fix
    return found


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("reason", DIED)
def test_a_node_that_died_is_that_of_the_actor_and_not_of_the_reporter(tmp_path, prefix, reason):
    found = told(tmp_path, *BLOCK, reason, prefix=prefix)
    assert found.cause == "Ray lost a node, 10.0.0.5, and its worker there with it"
    assert "oom" not in found.fix


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_preempted_node_is_told_as_one(tmp_path, prefix):
    said = "\tthe actor's node was preempted: spot reclaim"
    found = told(tmp_path, *BLOCK, DIED[1], said, prefix=prefix)
    assert found.cause.startswith("the node of a Ray worker, 10.0.0.5, was preempted")
    assert found.cause.endswith("Ray says: spot reclaim")


@pytest.mark.parametrize("form", [("ip", ""), ("address", " and node name: n7")])
def test_a_node_that_was_marked_dead_gives_its_address(tmp_path, form):
    marked = MARKED.format(*form)
    assert told(tmp_path, marked).cause.startswith("Ray took the node 10.0.0.7 for dead")
    found = told(tmp_path, marked, DIED[0])
    assert found.cause == "Ray lost a node, 10.0.0.7, and its worker there with it"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_end_of_a_process_or_an_owner_is_told_in_rays_words(tmp_path, prefix):
    said = "its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: code 2."
    found = told(tmp_path, *BLOCK, f"The actor is dead because {said}", prefix=prefix)
    assert found.cause == (
        "the process of a Ray worker at 10.0.0.5 ended; Ray says: SYSTEM_ERROR: code 2"
    )
    owner = "The actor is dead because its owner has died. Owner Id: 7"
    assert "its owner" in told(tmp_path, *BLOCK, owner, prefix=prefix).cause
    memory = "Task was killed due to the node running low on memory."
    assert told(tmp_path, *BLOCK, memory, prefix=prefix).name == "host_oom"


def test_without_a_reason_it_stays_a_guess(tmp_path):
    found = told(tmp_path, *BLOCK)
    assert (found.name, "often for the host's memory" in found.cause) == ("ray_worker", True)
