"""What Slurm knows of its nodes."""

from __future__ import annotations

import re

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import run

__all__ = ["usable_nodes"]

# sinfo(1), NODE STATE CODES; a trailing "*" is a node that does not respond.
UNUSABLE = re.compile(r"(?:down|drain|fail|maint|unk|future|power|reboot)|.*\*", re.IGNORECASE)


def usable_nodes(partition: str) -> frozenset[str]:
    """Nodes of a partition (empty: of all) on which a job can start, now or once they are free.

    Raises:
        SlurmError: when Slurm cannot be asked.
    """
    where = [f"--partition={partition}"] if partition else []
    said = run(["sinfo", "--noheader", "--Node", *where, "--format=%N %T"], timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"sinfo: {said.stderr.strip()}")
    rows = [line.split() for line in said.stdout.splitlines()]
    return frozenset(row[0] for row in rows if len(row) == 2 and not UNUSABLE.match(row[1]))
