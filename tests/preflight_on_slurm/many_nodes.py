"""A cluster of more nodes than Slurm's TreeWidth (50), and what can be wrong with some of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

from tests.cluster import Cluster, ClusterSpec, faults
from tests.cluster.shell import wait_until

__all__ = ["BEFORE", "BIG", "cut", "dead"]

Break = Callable[[Cluster, str], None]

# The launch waits up to 10 s for a node; with the 5 s of other tests the credentials of the nodes
# behind it would expire meanwhile, as they do nowhere with Slurm's 120 s.
BIG = ClusterSpec(
    nodes="node[1-64]", cluster_name="big", accounting=False, gpus_per_node=0, cred_expire_s=60
)


def _down_when_healed(cluster: Cluster) -> None:
    """A job with a node that was lost completes for minutes otherwise."""
    words = ["scontrol", "update", "NodeName=ALL", "State=DOWN", "Reason=healed"]

    def is_told() -> bool:  # a controller that still looks for the node answers late
        return cluster.command(words, check=False).returncode == 0

    cluster.on_reset(lambda: wait_until(is_told, "all nodes to be down", timeout_s=180))


def slow(cluster: Cluster, node: str) -> None:
    faults.slow_cable(cluster, node, 10)


def cut(cluster: Cluster, node: str) -> None:
    _down_when_healed(cluster)
    faults.cut_cable(cluster, node, end="switch")


def dead(cluster: Cluster, node: str) -> None:
    _down_when_healed(cluster)
    started = cluster.processes.find(f"slurmd-{node}")
    assert started is not None
    os.kill(started.pid, signal.SIGKILL)


def hung(cluster: Cluster, node: str) -> None:
    """It still accepts connections, and answers nothing."""
    _down_when_healed(cluster)
    faults.pause(cluster, node, r"^slurmd ")


def nothing(cluster: Cluster, node: str) -> None:
    pass


BEFORE: dict[str, tuple[Break, Sequence[str], str]] = {
    "all well": (nothing, (), "go"),
    "one slow": (slow, ("node40",), "no-go"),
    "two slow": (slow, ("node7", "node50"), "no-go"),
    "one cut before the step": (cut, ("node40",), "no-go"),
    "the last one cut before the step": (cut, ("node64",), "no-go"),
    "one dead": (dead, ("node23",), "no-go"),
    "the first one dead": (dead, ("node1",), "no-go"),
    "two dead": (dead, ("node2", "node33"), "no-go"),
    "one slurmd hangs": (hung, ("node40",), "no-go"),
}
