"""A site where Slurm itself measures the memory of a job and ends what is beyond its limit.

slurm.conf(5): JobAcctGatherParams.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import submit

pytestmark = pytest.mark.slurm
KILLS = ("JobAcctGatherParams=OverMemoryKill",)


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_slurm_kills_for_memory_is_told_so_and_not_tried_again(
    make_cluster: Callable[..., Cluster], tmp_path: Path, nodes: int
) -> None:
    cluster = make_cluster(nodes="node[1-2]", more=KILLS)
    words = (f"slurm.nodes={nodes}", "slurm.mem=1500M", "model.class_path=tests.faults.grows.Grows")
    training = submit(cluster, tmp_path, *words)
    assert training.wait_end() == "failed"
    (only,) = training.status()["attempts"]
    assert (only["outcome"], only["node"]) == ("out_of_memory", f"node{nodes}")
    assert "MiB of memory on that node, of 1500 MiB; slurm.mem" in only["reason"]
