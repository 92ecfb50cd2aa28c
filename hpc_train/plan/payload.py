"""What an attempt starts on its nodes. Pure: command lines, and nothing is started here.

A new kind (a script, torchrun, a container) is one file with a class that has `Payload`'s methods,
and its line in `payload_of`.
"""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import Protocol

from hpc_train.plan import env_names
from hpc_train.plan.container import in_container
from hpc_train.plan.plan import Plan


class Payload(Protocol):
    """The ranks of one attempt, as command lines."""

    def rank_argv(self) -> list[str]:
        """One rank, where srun starts each of them."""

    def node_argv(self, node: int, port: int) -> list[str]:
        """All ranks of one node, where there is no srun; `port` is that of their rendezvous."""

    @property
    def is_one_a_node(self) -> bool:
        """Whether srun starts one task a node, which starts the ranks of it."""


@dataclass(frozen=True)
class LightningRank:
    """Ranks of `hpc_train.training`, which read the rest from the run's plan.json.

    Attributes:
        module: What `python -m` runs.
    """

    plan: Plan
    module: str = "hpc_train.training"
    is_one_a_node: bool = False

    def rank_argv(self) -> list[str]:
        """`python -m hpc_train.training`."""
        return [self.plan.shell.python, "-m", self.module]

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
            self.module,
        ]


SCRIPT_RANK = "hpc_train.training.script_rank"
# Slurm's SIGTERM reaches all processes of a step (scancel(1)): torchrun would end its ranks 30 s
# after it, saved or not, and USR1 and USR2 would end torchrun. The ranks take their own.
_DEAF = 'trap "" TERM USR1 USR2; '
_NODE = "${SLURM_NODEID:-$NODE_RANK}"  # the latter over ssh, see ssh.ssh_step


@dataclass(frozen=True)
class TorchrunNode(LightningRank):
    """A node's ranks under torchrun, which srun starts once a node."""

    module: str = SCRIPT_RANK
    is_one_a_node: bool = True

    def rank_argv(self) -> list[str]:
        """The same as `node_argv`, in a shell that knows the node's number."""
        argv = self.node_argv(0, 0)
        mine = {
            "--node-rank=0": f'--node-rank="{_NODE}"',
            "--master-addr=127.0.0.1": f'--master-addr="${env_names.MASTER_ADDR}"',
            "--master-port=0": f'--master-port="${env_names.MASTER_PORT}"',
        }
        words = " ".join(mine.get(word) or shlex.quote(word) for word in argv)
        signals = "export TORCHELASTIC_SIGNALS_TO_HANDLE=SIGINT; "
        return ["sh", "-c", f"{_DEAF}{signals}exec {words}"]


@dataclass(frozen=True)
class OneProcessNode(LightningRank):
    """One process a node, which starts the ranks of it by itself."""

    module: str = "hpc_train.training.script_node"
    is_one_a_node: bool = True

    def rank_argv(self) -> list[str]:
        """With how many ranks the plan has a node, by which its files are numbered."""
        return [*super().rank_argv(), str(self.plan.shape.ranks_per_node)]

    def node_argv(self, node: int, port: int) -> list[str]:
        """The same with the variables that a launcher sets."""
        place = {
            "RANK": node,
            "WORLD_SIZE": self.plan.shape.nodes,
            "LOCAL_RANK": 0,
            "LOCAL_WORLD_SIZE": 1,
            "GROUP_RANK": node,
            env_names.MASTER_ADDR: "127.0.0.1",
            env_names.MASTER_PORT: port,
        }
        return ["env", *(f"{name}={value}" for name, value in place.items()), *self.rank_argv()]


@dataclass(frozen=True)
class InContainer:
    """The same inside of the plan's image."""

    plan: Plan
    inner: Payload

    @property
    def is_one_a_node(self) -> bool:
        """As it is without."""
        return self.inner.is_one_a_node

    def rank_argv(self) -> list[str]:
        """One rank in a container of its own."""
        return in_container(self.plan, self.inner.rank_argv())

    def node_argv(self, node: int, port: int) -> list[str]:
        """The launcher of a node and its ranks in one container."""
        return in_container(self.plan, self.inner.node_argv(node, port))


def payload_of(plan: Plan) -> Payload:
    """What this plan starts."""
    if plan.container is not None:
        shell = dataclasses.replace(plan.shell, python=plan.container.python)
        inner = dataclasses.replace(plan, container=None, shell=shell)
        return InContainer(plan, payload_of(inner))
    if plan.script is not None:
        if plan.script.launcher == "torchrun":
            return TorchrunNode(plan)
        if plan.script.launcher == "none":
            return OneProcessNode(plan)
        return LightningRank(plan, SCRIPT_RANK)
    if plan.verb == "fit":
        return LightningRank(plan)
    does = "bench_rank" if plan.verb == "bench" else "evaluation"
    return LightningRank(plan, f"hpc_train.training.{does}")
