"""Reservations of others, and of the maintenance, that keep a job waiting.

Source: scontrol(1), SHOW and SPECIFICATIONS FOR RESERVATIONS; squeue(1), JOB REASON CODES. Slurm's
reasons are "ReqNodeNotAvail, Reserved for maintenance" and "ReqNodeNotAvail, May be reserved for
other job" (src/slurmctld/job_scheduler.c): no node is down, and `sinfo -R` is empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import expand
from hpc_train.plan.units import slurm_time
from hpc_train.slurm.command import PATIENCE_S, run
from hpc_train.slurm.jobs import seconds_of
from hpc_train.slurm.nodes import NodeRow, nodes_of_partition

# scontrol writes them with underscores, in brackets here and there.
_RESERVED = re.compile(r"\(?ReqNodeNotAvail,?[ _]*(?:May[ _]be[ _])?[Rr]eserved")
_SHORTEST_S = 600.0  # a start and a save take a part of it
_SHOWN = "`scontrol show reservation` shows until when"


@dataclass(frozen=True)
class Reservation:
    """One of Slurm's, with its times in Slurm's form, local to the cluster."""

    name: str
    start: str
    end: str
    nodes: str
    is_maintenance: bool

    @property
    def told(self) -> str:
        """`maint (maintenance, node[1-3])`."""
        what = "maintenance, " if self.is_maintenance else ""
        return f"{self.name} ({what}{self.nodes})"


def is_reserved(reason: str) -> bool:
    """Whether a job waits since its nodes are, or will be, reserved for others."""
    return _RESERVED.match(reason) is not None


def known_reservations() -> list[Reservation]:
    """All that there are; none where Slurm does not tell."""
    try:
        said = run(["scontrol", "--oneliner", "show", "reservation"], timeout_s=PATIENCE_S)
    except SlurmError:
        return []
    found = []
    for line in said.stdout.splitlines():
        fields = dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", line))
        if "ReservationName" in fields:
            flags = fields.get("Flags", "").split(",")
            times = fields.get("StartTime", ""), fields.get("EndTime", "")
            name, nodes = fields["ReservationName"], fields.get("Nodes", "")
            found.append(Reservation(name, *times, nodes, "MAINT" in flags))
    return found


def explain_reserved(
    reservations: Sequence[Reservation],
    options: Mapping[str, str | None] | None,
    nodes: Sequence[NodeRow],
    now: float,
) -> tuple[str, str]:
    """What keeps the job waiting, and what may be done beside waiting; the second may be empty.

    Args:
        options: sbatch's long options by name, as its run asked for them; None where unknown.
        nodes: What Slurm has, where it was asked.
        now: In seconds since the epoch.
    """
    own = (options or {}).get("reservation") or ""
    theirs = nodes_of_partition(options or {}, nodes)
    met = [
        (seconds_of(it.start) or 0.0, it)
        for it in reservations
        if it.name not in own.split(",") and _meets(it, theirs) and (seconds_of(it.end) or 0) > now
    ]
    if not met:
        return f"its nodes are reserved for others ({_SHOWN})", ""
    start_s, first = min(met, key=lambda it: it[0])
    until = first.end.replace("T", " ")
    if start_s <= now:
        return f"nodes that it needs are reserved for others: {first.told}, until {until}", ""
    said = (
        f"slurm.time reaches into the reservation {first.told},"
        f" from {first.start.replace('T', ' ')} until {until}"
    )
    free_s = int(start_s - now - 60.0) // 60 * 60
    if free_s < _SHORTEST_S:
        return said, ""
    shorter = f"slurm.time={slurm_time(free_s)} or less lets it begin before"
    return said, f"{shorter}, and its run goes on in another job"


def _meets(reservation: Reservation, nodes: Sequence[str]) -> bool:
    """Whether it has nodes that the job may have; so it is where one of them is not known."""
    try:
        reserved = set(expand(reservation.nodes))
    except ValueError:
        return True
    return not nodes or not reserved.isdisjoint(nodes)
