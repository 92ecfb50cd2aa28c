"""What a partition allows, asked before a submission that Slurm would accept and never start."""

from __future__ import annotations

from hpc_train.errors import SlurmError
from hpc_train.plan.units import time_s
from hpc_train.slurm.command import run

__all__ = ["check_time"]


def check_time(options: dict[str, str | None]) -> None:
    """Refuse a time limit above the partition's.

    Without EnforcePartLimits (slurm.conf(5)) sbatch takes such a job, and it pends for ever with
    the reason PartitionTimeLimit. A QOS may lift the limit, so nothing is refused where one is set.

    Args:
        options: sbatch's long options by name.

    Raises:
        SlurmError: naming the key and the longest time.
    """
    wanted = options.get("time")
    if not wanted or options.get("qos"):
        return
    wanted_s = time_s(wanted) if wanted != "UNLIMITED" else None
    names = (options.get("partition") or "").split(",")
    said = run(["sinfo", "--noheader", "--format=%P|%l"], timeout_s=10)
    limits = dict(line.split("|", 1) for line in said.stdout.splitlines() if "|" in line)
    asked = {
        name.rstrip("*"): limit
        for name, limit in limits.items()
        if name.rstrip("*") in names or (names == [""] and name.endswith("*"))
    }
    if not asked or any(_fits(wanted_s, limit) for limit in asked.values()):
        return
    shown = ", ".join(f"{name} {limit}" for name, limit in asked.items())
    raise SlurmError(
        f"slurm.time {wanted} is longer than the partition allows ({shown}), so the job would"
        " never start",
        "write a shorter slurm.time: a run goes on over several jobs; or another slurm.partition",
    )


def _fits(wanted_s: int | None, limit: str) -> bool:
    if limit in ("infinite", "n/a"):
        return True
    limit_s = time_s(limit)
    return limit_s is None or (wanted_s is not None and wanted_s <= limit_s)
