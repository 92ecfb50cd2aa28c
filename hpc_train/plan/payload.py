"""What an attempt starts on its nodes. Pure: command lines, and nothing is started here.

A new kind (a script, torchrun, a container) is one file with a class that has `Payload`'s methods,
and its line in `payload_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hpc_train.plan.plan import Plan

__all__ = ["LightningRank", "Payload", "payload_of"]


class Payload(Protocol):
    """The ranks of one attempt, as command lines."""

    def rank_argv(self) -> list[str]:
        """One rank, where srun starts each of them."""

    def node_argv(self, node: int, port: int) -> list[str]:
        """All ranks of one node, where there is no srun; `port` is that of their rendezvous."""


@dataclass(frozen=True)
class LightningRank:
    """Ranks of `hpc_train.training`, which read the rest from the run's plan.json."""

    plan: Plan

    def rank_argv(self) -> list[str]:
        """`python -m hpc_train.training`."""
        return [self.plan.shell.python, "-m", "hpc_train.training"]

    def node_argv(self, node: int, port: int) -> list[str]:
        """The same under torch's elastic launcher."""
        shape = self.plan.shape
        return [
            self.plan.shell.python,
            "-m",
            "torch.distributed.run",
            f"--nnodes={shape.nodes}",
            f"--nproc-per-node={shape.ranks_per_node}",
            f"--node-rank={node}",
            "--master-addr=127.0.0.1",
            f"--master-port={port}",
            "--max-restarts=0",
            "-m",
            "hpc_train.training",
        ]


def payload_of(plan: Plan) -> Payload:
    """What this plan starts."""
    return LightningRank(plan)
