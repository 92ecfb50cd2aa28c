"""Before a run is made or goes on: whether the hosts of its plan can begin."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hpc_train.backends.submit import detect_cluster
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Plan


def where_to(plan: Plan, cluster: str | None) -> str:
    """`slurm` or `local`, by the user's word or found out; hosts are started from this machine.

    Raises:
        ConfigError: a plan with hosts is to go to Slurm.
    """
    if cluster not in (None, "slurm", "local"):
        raise ConfigError(f"cluster is {cluster!r}", "write 'slurm' or 'local'")
    if not plan.hosts:
        return cluster or detect_cluster()
    if cluster == "slurm":
        raise ConfigError(
            "hosts are started over ssh, and this is to go to Slurm",
            "hpc-train launch CFG; or hosts=[] for Slurm",
        )
    return "local"


def look_at_hosts(plan: Plan, workdir: Path) -> None:
    """Refuse hosts that cannot begin, where the plan names some; what is only odd is said.

    Args:
        workdir: What the plan's folders begin at, where they are not settled.

    Raises:
        CheckError: see `check_hosts`.
    """
    if not plan.hosts:
        return
    from hpc_train.ssh.check_hosts import check_hosts

    runs = workdir / Path(plan.runs_dir).expanduser()
    for note in check_hosts(plan.placed(str(workdir / plan.workdir), str(runs)), os.environ):
        print(f"note: {note}", file=sys.stderr)  # noqa: T201
