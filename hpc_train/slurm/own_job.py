"""Whether the job that this process is in has room for the ranks of a plan, told by itself.

A step that has no room is refused by srun at each attempt, in words that a lost node may have, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpc_train.errors import CheckError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.slurm.jobs import job_details
from hpc_train.slurm.own_step import is_batch_script, refuse_within_step
from hpc_train.slurm.partitions import any_gpus


def check_own_job(
    environ: Mapping[str, str],
    plan: Plan,
    proc: Path = Path("/proc"),
    *,
    is_rendered: bool = True,
) -> None:
    """Refuse a job with fewer nodes, CPUs or GPUs than the ranks need, and a step that has them.

    Not so with --overcommit, and in a heterogeneous job, whose components differ.

    Args:
        proc: Where the processes are, which tell a batch script from an salloc.
        is_rendered: A batch script is one that `hpc-train render` wrote, with options of its own.

    Raises:
        CheckError: with what to ask Slurm for; see `refuse_within_step`, too.
    """
    refuse_within_step(environ, plan.shape)
    if "SLURM_HET_SIZE" in environ:
        return
    job, shape, cpus = environ["SLURM_JOB_ID"], plan.shape, plan.slurm.cpus_per_rank or 1
    ranks, is_batch = shape.ranks_per_node, is_batch_script(job, proc)
    there = list(_cpus_per_node(environ.get("SLURM_JOB_CPUS_PER_NODE", "")))
    asked = f"--nodes={shape.nodes} --ntasks-per-node={ranks}"
    asked += f" --cpus-per-task={cpus}" if cpus > 1 else ""
    asked += f" --gres=gpu:{shape.gpus_per_node}" if plan.insists_on_gpus else ""
    fix = f"salloc {asked}, with your partition and time; or hpc-train submit, which asks by itself"
    if is_batch:
        fix = f"ask sbatch for {asked}, by options or by #SBATCH lines of the script; or"
        fix += " hpc-train submit, which asks by itself"
    has_own = is_batch and is_rendered
    if is_batch and there and len(there) < shape.nodes:
        few = f"the plan wants {shape.nodes} nodes and job {job} has {len(there)}"
        again = _sbatch_again("--nodes", f"--nodes {len(there)}")
        raise CheckError(few, again if has_own else fix)
    room = sum(count >= ranks * cpus for count in there)
    if there and room < shape.nodes and "SLURM_OVERCOMMIT" not in environ:
        counts = dict.fromkeys(map(str, there))
        has = f"job {job} has {' and '.join(counts)} a node"
        if has_own:
            fewer = sorted(there, reverse=True)[shape.nodes - 1] // cpus
            smaller = f"--gpus {fewer}" if fewer else ""
            fix = _sbatch_again(_too_small(environ, plan, cpus), smaller)
        raise CheckError(f"{ranks} ranks a node need {ranks * cpus} CPUs, and {has}", fix)
    if plan.insists_on_gpus:
        _check_gpus(job, shape.gpus_per_node, _sbatch_again("--gres", "") if has_own else fix)


def _sbatch_again(without: str, smaller: str) -> str:
    """What to type for a script that `hpc-train render` wrote, which has its own options."""
    anew = f", or render it anew for less: hpc-train render CFG {smaller}" if smaller else ""
    return f"sbatch it without {without}, as it has its own{anew}"


def _too_small(environ: Mapping[str, str], plan: Plan, cpus: int) -> str:
    """The option of sbatch's command line by which a job has fewer CPUs than its script asks for.

    sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
    """
    ranks = plan.shape.ranks_per_node
    tasks = (plan.shape.nodes + plan.shape.spares) * ranks
    asked = {
        "--ntasks-per-node": (environ.get("SLURM_NTASKS_PER_NODE"), ranks),
        "--ntasks": (environ.get("SLURM_NTASKS"), tasks),
        "--cpus-per-task": (environ.get("SLURM_CPUS_PER_TASK"), cpus),
    }
    less = (it for it, (has, own) in asked.items() if has and has.isdecimal() and int(has) < own)
    return next(less, "options for tasks and CPUs")


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
