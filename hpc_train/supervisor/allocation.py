"""Where an attempt runs: inside a Slurm job, on hosts behind ssh, or on this machine alone."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hpc_train.config.hosts import read_hosts
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Plan, Shape
from hpc_train.ssh.ssh_step import step_command

Backend = Literal["slurm", "ssh", "local"]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The allocation of one attempt.

    Attributes:
        job_id: As Slurm's commands take it, `ARRAY_TASK` for a task of an array; or the id the
            local executor gave; "-" in the foreground.
        nodes: Host names of the allocation, in Slurm's order; on one machine `shape.nodes`
            simulated ones, named HOST/0, HOST/1 ...
        restarts: How often Slurm has restarted the job (SLURM_RESTART_COUNT).
        cluster: SLURM_CLUSTER_NAME; empty locally.
        srun: What a step is started with; on this machine alone there are none.
    """

    backend: Backend
    job_id: str
    nodes: tuple[str, ...]
    restarts: int = 0
    cluster: str = ""
    srun: tuple[str, ...] = ("srun",)

    @property
    def is_slurm(self) -> bool:
        """Whether Slurm runs this attempt."""
        return self.backend == "slurm"

    @property
    def has_steps(self) -> bool:
        """Whether there are nodes on which steps are started: by srun, or over ssh."""
        return self.backend != "local"

    def check_srun(self, environ: Mapping[str, str]) -> None:
        """Refuse a PATH without the program that starts the ranks.

        Raises:
            CheckError: as the lines of `env` leave it.
        """
        path = environ.get("PATH", "")
        if self.is_slurm and shutil.which(self.srun[0], path=path) is None:
            raise CheckError(
                f"srun is not on the PATH of the job, as env leaves it (PATH={path})",
                "in env.setup, keep what was there: export PATH=FOLDER:$PATH",
            )

    def unused(self, environ: Mapping[str, str], shape: Shape) -> str:
        """What the job has and the plan does not use, and how it would; empty where it uses all.

        `sbatch --nodes=2` over a script that was rendered for one node is taken without a word.
        """
        if not self.is_slurm:
            return ""
        rest = len(self.nodes) - shape.nodes - shape.spares
        ranks = shape.ranks_per_node
        there = [environ.get("SLURM_NTASKS_PER_NODE", "")]
        there += [environ.get("SLURM_GPUS_ON_NODE", "")] if shape.gpus_per_node else []
        each = max((int(number) for number in there if number.isdecimal()), default=0)
        parts = [f"{rest} of the job's {len(self.nodes)} nodes"] if rest > 0 else []
        parts += [f"room for {each} ranks a node, where {ranks} start"] if each > ranks else []
        options = [f"--nodes {len(self.nodes)}"] if rest > 0 else []
        options += [f"--gpus {each}"] if each > ranks else []
        return f"{' and '.join(parts)}; to use it plan with {' '.join(options)}" if parts else ""

    @classmethod
    def of_hosts(cls, plan: Plan, plan_file: Path) -> Allocation:
        """The hosts that the plan names."""
        nodes = tuple(host.name for host in read_hosts(plan.hosts))
        job = os.environ.get("SUBMITIT_LOCAL_JOB_ID", f"pid-{os.getpid()}")
        return cls(backend="ssh", job_id=job, nodes=nodes, srun=step_command(plan_file))

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str], shape: Shape, *, hostname: str = ""
    ) -> Allocation:
        """Read the allocation from the batch step's environment (sbatch(1), OUTPUT ENVIRONMENT).

        Raises:
            CheckError: when the allocation is smaller than the plan.
        """
        if not environ.get("SLURM_JOB_ID") or environ.get("SUBMITIT_EXECUTOR") == "local":
            host = hostname or socket.gethostname()
            job = environ.get("SUBMITIT_LOCAL_JOB_ID", f"pid-{os.getpid()}")
            nodes = tuple(f"{host}/{index}" for index in range(shape.nodes))
            return cls(backend="local", job_id=job, nodes=nodes)
        from hpc_train.plan.hostlist import expand
        from hpc_train.slurm.control import job_id_in

        nodes = tuple(expand(environ["SLURM_JOB_NODELIST"]))
        if len(nodes) < shape.nodes:
            raise CheckError(
                f"the plan wants {shape.nodes} nodes and job {environ['SLURM_JOB_ID']} has"
                f" {len(nodes)} ({environ['SLURM_JOB_NODELIST']})",
                f"ask for {shape.nodes} nodes (sbatch or salloc --nodes={shape.nodes}), or plan"
                f" with --nodes {len(nodes)}",
            )
        return cls(
            backend="slurm",
            job_id=job_id_in(environ),
            nodes=nodes,
            restarts=int(environ.get("SLURM_RESTART_COUNT", "0")),
            cluster=environ.get("SLURM_CLUSTER_NAME", ""),
        )
