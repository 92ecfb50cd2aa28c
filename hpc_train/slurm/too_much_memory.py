"""More memory than any node of a partition has: why it cannot be had, and how much can."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.plan.units import memory_mib, slurm_memory


def too_much_memory(
    options: Mapping[str, str | None], memory: Mapping[str, int], gpus: int = 1
) -> tuple[str, str, str]:
    """What is asked for, why it cannot be had, and what to write; empty where a node has it.

    Args:
        options: sbatch's long options by name.
        memory: MiB of the largest node, by partition; what was never configured is 1
            (slurm.conf(5), RealMemory).
        gpus: That the job has of each node.
    """
    tasks, cpus = (int(options.get(it) or 1) for it in ("ntasks-per-node", "cpus-per-task"))
    shares = {"mem": 1, "mem-per-cpu": tasks * cpus, "mem-per-gpu": gpus}
    option = next((it for it in shares if options.get(it)), "")
    most, size = max(memory.values(), default=0), options.get(option) or "0"
    if most <= 1 or memory_mib(size) * shares.get(option, 1) <= most:
        return "", "", ""
    key = f"slurm.{option.replace('-', '_')}"
    each = shares[option]
    of = {"mem-per-cpu": "CPUs", "mem-per-gpu": "GPUs"}.get(option, "")
    times = f", for {each} {of} a node {memory_mib(size) * each}M" if each > 1 else ""
    there = ", ".join(f"{name} {mib}M" for name, mib in memory.items())
    return (
        f"{key} is {size}{times}",
        f"no node of the partition has so much ({there}), so the job would never start",
        f"write {key}={slurm_memory(most // each)} or less",
    )
