"""What an attempt starts, as command lines."""

from __future__ import annotations

from pathlib import Path

from hpc_train.plan.payload import payload_of
from tests.training.launched import make_plan


def test_srun_starts_one_rank_and_torchs_launcher_those_of_a_node(tmp_path: Path) -> None:
    payload = payload_of(make_plan(tmp_path, nodes=3, ranks_per_node=2))
    python, *rank = payload.rank_argv()
    assert rank == ["-m", "hpc_train.training"]
    for node in (0, 2):
        launcher = payload.node_argv(node, port=4711)
        assert launcher[:3] == [python, "-m", "torch.distributed.run"]
        assert {"--nnodes=3", "--nproc-per-node=2", f"--node-rank={node}"} < set(launcher)
        assert "--master-port=4711" in launcher
        assert launcher[-2:] == rank, "what is started is the same"
