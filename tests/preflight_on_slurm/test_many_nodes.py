"""Sixty-four nodes: above Slurm's TreeWidth (50), so that messages go through other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import hpc_train, submit
from tests.preflight_on_slurm.lab import Lab, Running
from tests.preflight_on_slurm.many_nodes import BEFORE, BIG, cut, dead

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def big() -> Iterator[Cluster]:
    """A cluster of this module alone, since every reset of 64 nodes takes a second."""
    with Cluster(BIG) as cluster:
        yield cluster


@pytest.fixture
def lab(big: Cluster, tmp_path: Path) -> Iterator[Lab]:
    yield Lab(big, tmp_path)
    big.reset()


# The others differ in which node it is, and run with the soak.
ALWAYS = ("two slow", "one cut before the step", "the first one dead")


@pytest.mark.parametrize(
    "case",
    [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.soak) for name in BEFORE],
)
def test_the_right_nodes_of_64_are_named_and_the_exit_code_says_it(lab: Lab, case: str) -> None:
    broken, bad, verdict = BEFORE[case]
    for node in bad:
        broken(lab.cluster, node)
    said = lab.check(nodes=64)
    assert (said.verdict, said.code) == (verdict, 3 if bad else 0), said.document["summary"]
    assert said.named == set(bad)
    assert said.document["rounds"] <= 4
    assert said.seconds < 180
    if broken in (cut, dead):
        for node in bad:
            (finding,) = said.findings(node, "launch")
            assert "Communication connection failure" in finding["evidence"]
        tested = {name for pair in said.document["pairs"] for name in (pair["a"], pair["b"])}
        assert len(tested) == 64 - len(bad)  # the others were checked all the same


@pytest.mark.soak
@pytest.mark.parametrize("node", ["node40", "node1"])
def test_a_cable_of_64_that_is_cut_after_the_start_names_its_node(lab: Lab, node: str) -> None:
    def cut_later(running: Running) -> None:
        running.wait_for(f"look-{node}.json")
        cut(lab.cluster, node)

    with lab.start(nodes=64) as running:
        cut_later(running)
        said = running.said()
    assert (said.verdict, said.code, said.named) == ("no-go", 3, {node})


@pytest.mark.parametrize("count", [51, pytest.param(2, marks=pytest.mark.soak)])
def test_one_more_node_than_the_tree_is_wide(lab: Lab, count: int) -> None:
    dead(lab.cluster, f"node{count}")
    said = lab.check(nodes=count)
    assert (said.verdict, said.code, said.named) == ("no-go", 3, {f"node{count}"})


def test_ranks_that_srun_cannot_start_on_a_node_start_on_the_spare(lab: Lab, big: Cluster) -> None:
    """Between the preflight (here: off) and the ranks a node is lost; nobody requeues anything."""
    dead(big, "node2")
    few = ["slurm.nodelist=node[1-4]", "slurm.nodes=3", "slurm.spares=1", "trainer.max_steps=4"]
    training = submit(big, lab.folder, *few, "preflight.mode=off")
    assert training.wait_end() == "completed", training.story()
    (only,) = training.status()["attempts"]
    assert only["nodes"] == ["node1", "node3", "node4"]
    log = training.run.attempt(0).supervisor_log.read_text()
    assert "srun could not start the ranks on node2: Communication connection failure" in log
    past = hpc_train(big, "preflight", str(training.run.path))
    assert past.returncode == 0, past.stderr
    assert "node2 slurmd launch" in past.stdout
