"""The options of the command line, and of `hpc_train.load`, that are short for a config key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """What an option stands for; its name is that of the notebook's argument, `runs_dir`."""

    name: str
    key: str
    help: str
    type: type = str

    @property
    def option(self) -> str:
        """As it is typed, `--runs-dir`."""
        return "--" + self.name.replace("_", "-")


FLAGS: Mapping[str, Flag] = {
    flag.name: flag
    for flag in (
        Flag("nodes", "slurm.nodes", "Nodes", int),
        Flag("gpus", "slurm.gpus_per_node", "GPUs, so ranks, a node", int),
        Flag("spares", "slurm.spares", "Nodes in reserve", int),
        Flag("time", "slurm.time", "Time limit of one job, like 2:00:00"),
        Flag("partition", "slurm.partition", "Partition"),
        Flag("account", "slurm.account", "Account"),
        Flag("qos", "slurm.qos", "Quality of service"),
        Flag("name", "name", "Name of the run"),
        Flag("runs_dir", "runs_dir", "Folder of all runs"),
        Flag("hosts", "hosts", "Machines that ssh reaches: a,me@b,c:2222"),
    )
}
