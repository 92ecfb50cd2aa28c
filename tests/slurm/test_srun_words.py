"""What srun says where it cannot start a step, by the format strings of Slurm."""

from __future__ import annotations

import pytest

from hpc_train.slurm.srun_words import launch_failures, nodes_that_failed, waits_for

NODES = [f"node{number}" for number in range(1, 65)]
CUT = "Communication connection failure"
EXPIRED = "Job credential expired"


def failed(node: str, words: str = CUT, step: str = "StepId=2.0") -> str:
    return f"srun: error: Task launch for {step} failed on node {node}: {words}\n"


@pytest.mark.parametrize("step", ["StepId=2.0", "StepId=2.0+1", "2.0"])
def test_the_node_that_cannot_be_reached_is_named_with_sruns_words(step: str) -> None:
    text = failed("node40", step=step) + "srun: error: Application launch failed: ...\n"
    assert launch_failures(text, NODES) == {"node40": CUT}


def test_nodes_behind_it_whose_credentials_expired_meanwhile_are_not_blamed() -> None:
    text = failed("node1") + "".join(failed(node, EXPIRED) for node in NODES[1:60])
    assert launch_failures(text, NODES) == {"node1": CUT}
    assert launch_failures(failed("node2", EXPIRED) + failed("node1"), NODES) == {"node1": CUT}


@pytest.mark.parametrize(
    "words",
    [
        "Socket timed out on send/recv operation",
        "Zero Bytes were transmitted or received",
        "Message receive failure",
        "Connection timed out establishing",
        "No route to host",
        "Can't find an address, check slurm.conf",
        "Job prolog failed",
        "Slurmd could not fork job",
    ],
)
def test_every_reason_names_a_node_that_stands_alone(words: str) -> None:
    assert launch_failures(failed("node7", words), NODES) == {"node7": words}


@pytest.mark.parametrize("count", [2, 3, 64])
def test_what_most_nodes_suffer_from_names_nobody(count: int) -> None:
    nodes = NODES[:count]
    for words in (CUT, EXPIRED):
        text = "".join(failed(node, words) for node in nodes)
        assert launch_failures(text, nodes) == {}
    assert launch_failures(failed("node2"), ["node1", "node2"]) == {"node2": CUT}
    assert launch_failures(failed("node1"), ["node1"]) == {"node1": CUT}


@pytest.mark.parametrize(
    "text",
    ["", "srun: Job step aborted\n", failed("elsewhere"), "Unable to confirm allocation for job 7"],
)
def test_without_the_name_of_a_node_of_the_step_nobody_is_named(text: str) -> None:
    assert launch_failures(text, NODES) == {}


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("srun: error: Node failure on node3", ("node3",)),
        ("srun: error: Node failure on node[3-4,9]", ("node3", "node4", "node9")),
        ("srun: error: Cannot communicate with node 2.  Aborting job.", ("node3",)),
        ("srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 0",
         ("node1",)),
        ("srun: error: Aborting, io error and missing step on node 63", ("node64",)),
        ("srun: error: Node failure on node[", ()),
        ("srun: error: Cannot communicate with node 99.  Aborting job.", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_nodes_that_srun_loses_later_are_named(line: str, nodes: tuple[str, ...]) -> None:
    assert nodes_that_failed(line, NODES) == nodes


WAITS = "srun: Job 7 step creation {} disabled, retrying (Requested nodes are busy)\n"


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (WAITS.format("temporarily"), True),
        (WAITS.format("temporarily") + WAITS.format("still"), True),
        (WAITS.format("temporarily") + "srun: Step created for job 7\n", False),
        (WAITS.format("temporarily") + "srun: Step created for StepId=7.1\n", False),
        ("srun: Job step aborted\n", False),
        ("", False),
    ],
)
def test_srun_is_said_to_wait_until_it_has_its_step(text: str, waits: bool) -> None:
    said = "srun waits (Requested nodes are busy): `squeue --steps` shows which step of the job"
    assert waits_for(text) == (f"{said} holds the nodes" if waits else "")
