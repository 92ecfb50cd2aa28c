"""Whether the job that this process is in has room for the ranks of a plan, told by itself.

A step that has no room is refused by srun at each attempt, in words that a lost node may have, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.slurm.jobs import job_details
from hpc_train.slurm.own_step import refuse_within_step
from hpc_train.slurm.partitions import any_gpus


def check_own_job(environ: Mapping[str, str], plan: Plan) -> None:
    """Refuse a job with fewer CPUs or GPUs a node than the ranks need, and a step that has them.

    Not so with --overcommit, and in a heterogeneous job, whose components differ.

    Raises:
        CheckError: with what to ask Slurm for; see `refuse_within_step`, too.
    """
    refuse_within_step(environ, plan.shape)
    if "SLURM_HET_SIZE" in environ:
        return
    ranks, cpus = plan.shape.ranks_per_node, plan.slurm.cpus_per_rank or 1
    asked = f"salloc --nodes={plan.shape.nodes} --ntasks-per-node={ranks}"
    asked += f" --cpus-per-task={cpus}" if cpus > 1 else ""
    asked += f" --gres=gpu:{plan.shape.gpus_per_node}" if plan.insists_on_gpus else ""
    fix = f"{asked}, with your partition and time; or hpc-train submit, which asks by itself"
    there = list(_cpus_per_node(environ.get("SLURM_JOB_CPUS_PER_NODE", "")))
    room = sum(count >= ranks * cpus for count in there)
    if there and room < plan.shape.nodes and "SLURM_OVERCOMMIT" not in environ:
        has = f"job {environ['SLURM_JOB_ID']} has {environ['SLURM_JOB_CPUS_PER_NODE']} a node"
        raise CheckError(f"{ranks} ranks a node need {ranks * cpus} CPUs, and {has}", fix)
    if plan.insists_on_gpus:
        _check_gpus(environ["SLURM_JOB_ID"], plan.shape.gpus_per_node, fix)


def _cpus_per_node(text: str) -> Iterator[int]:
    """8, 8, 4 of `8(x2),4` (sbatch(1), SLURM_JOB_CPUS_PER_NODE)."""
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        yield from [int(count)] * int(times or 1)


def _check_gpus(job: str, wanted: int, fix: str) -> None:
    try:
        fields = job_details(job).fields
        # A whole node comes with all it has, which not every site counts (AccountingStorageTRES).
        is_whole = fields.get("OverSubscribe") == "NO"
        if is_whole or any("gpu" in value for value in fields.values()) or not any_gpus():
            return
    except SlurmError:
        return  # nobody knows: as without this question
    raise CheckError(f"{wanted} ranks a node need {wanted} GPUs, and job {job} has none", fix)
