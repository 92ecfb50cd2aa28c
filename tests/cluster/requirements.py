"""What the machine must have for a real Slurm."""

from __future__ import annotations

import functools
import os
import re
import shutil

from tests.cluster.shell import run

__all__ = ["PACKAGES", "missing", "slurm_version"]

# Debian's packages, and a command of each by which it is known to be there.
PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurm-client": "sbatch",
    "slurmdbd": "slurmdbd",
    "munge": "munged",
    "mariadb-server": "mariadbd",
    "iproute2": "ip",
    "nftables": "nft",
    "infiniband-diags": "ibstat",
    "openssh-server": "sshd",
}


@functools.cache
def missing() -> str:
    """What is missing and how to get it, in one line; empty when all is there."""
    if os.geteuid() != 0:
        return "it needs root"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    packages = [name for name, command in PACKAGES.items() if not shutil.which(command, path=path)]
    if packages:
        return f"not installed: {' '.join(packages)} (bash tests/cluster/install.sh)"
    # Root in a container often may not make nodes.
    unshare = ["unshare", "--net", "--uts", "--mount", "mount", "-t", "sysfs", "sysfs", "/sys"]
    if run(unshare, check=False).returncode != 0:
        return "this machine does not let root make namespaces (in docker: run --privileged)"
    return ""


@functools.cache
def slurm_version() -> tuple[int, ...]:
    """Of the Slurm that is installed, for example (22, 5, 8)."""
    return tuple(int(part) for part in re.findall(r"\d+", run(["slurmctld", "-V"]).stdout))
