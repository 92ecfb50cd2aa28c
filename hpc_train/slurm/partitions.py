"""What a partition allows, asked before a submission that Slurm would accept and never start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.plan.units import time_s
from hpc_train.slurm.command import run


@dataclass(frozen=True)
class Partition:
    """A row of sinfo: its name, longest time, nodes in any state, and the most a job may have."""

    name: str
    limit: str
    nodes: int
    most: str

    def limit_s(self) -> float:
        """The longest time of a job in seconds; infinite where there is no limit."""
        limit_s = None if self.limit in ("infinite", "n/a") else time_s(self.limit)
        return math.inf if limit_s is None else limit_s

    def fits_time(self, wanted_s: int | None) -> bool:
        """Whether a job of so many seconds (None: without a limit) may run here."""
        return (math.inf if wanted_s is None else wanted_s) <= self.limit_s()

    def nodes_of_a_job(self, *, is_lifted: bool) -> int:
        """The most nodes a job may have; where `is_lifted`, MaxNodes does not count."""
        return int(self.most) if self.most.isdigit() and not is_lifted else self.nodes


def check_partition(options: Mapping[str, str | None]) -> None:
    """Refuse a time limit above the partition's, and more nodes than it has.

    Without EnforcePartLimits (slurm.conf(5)) sbatch takes such a job, and it pends for ever with
    the reason PartitionTimeLimit or PartitionNodeLimit. A QOS may lift both limits, though not the
    number of nodes that there are.

    Args:
        options: sbatch's long options by name.

    Raises:
        SlurmError: naming the key and what the partition has.
    """
    if options.get("clusters"):
        return  # another cluster's partitions
    asked = _asked(options.get("partition") or "")
    has_qos = bool(options.get("qos"))
    time = options.get("time")
    if asked and time and not has_qos:
        wanted_s = time_s(time) if time != "UNLIMITED" else None
        if not any(partition.fits_time(wanted_s) for partition in asked):
            shown = ", ".join(f"{partition.name} {partition.limit}" for partition in asked)
            raise SlurmError(
                f"slurm.time {time} is longer than the partition allows ({shown}), so the job would"
                " never start",
                _chain(max(asked, key=Partition.limit_s), wanted_s, may_go_on="requeue" in options),
            )
    nodes = int(options.get("nodes") or 1)
    most = {partition.name: partition.nodes_of_a_job(is_lifted=has_qos) for partition in asked}
    if most and nodes > max(most.values()):
        shown = ", ".join(f"{name} {number}" for name, number in most.items())
        raise SlurmError(
            f"slurm.nodes (slurm.spares among them) is {nodes}, more than the partition gives a"
            f" job ({shown}), so the job would never start",
            f"write --nodes {max(most.values())} or fewer, or another slurm.partition"
            " (`sinfo -s` lists them)",
        )


def _chain(longest: Partition, wanted_s: int | None, *, may_go_on: bool) -> str:
    """How the run gets its time all the same: in one job after another."""
    jobs = "several" if wanted_s is None else str(math.ceil(wanted_s / longest.limit_s()))
    way = f"a chain of {jobs} jobs does it: write --partition {longest.name} --time {longest.limit}"
    if not may_go_on:
        return f"{way} and requeue.enabled=true, so that the run goes on at each limit"
    return f"{way}; the run saves before each limit and goes on, or write another slurm.partition"


def _asked(names: str) -> list[Partition]:
    """The partitions of these names, or the default one; none where Slurm does not tell."""
    said = run(["sinfo", "--noheader", "--format=%P|%l|%D|%s"], timeout_s=10)
    rows = [line.split("|") for line in said.stdout.splitlines()]
    return [
        Partition(name.rstrip("*"), limit, int(nodes), most.rpartition("-")[2])
        for name, limit, nodes, most in (row for row in rows if len(row) == 4)
        if name.rstrip("*") in names.split(",") or (not names and name.endswith("*"))
    ]
