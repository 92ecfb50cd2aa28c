"""Where a cluster keeps its things, and the numbers that keep clusters apart: pure names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

__all__ = ["BASE", "Layout"]

# Fixed rather than tempfile.gettempdir(): the numbers are handed out under a lock in here, and two
# processes with different TMPDIR must still see each other. Short, as a socket's path is limited.
BASE = Path("/tmp/hpc-train-clusters")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names, ports and addresses of the cluster number ``index``.

    Args:
        index: 1 to 250; 0 is used while the database template is being made.
        controller: Host name of the machine that runs the controller.
        base: Folder of all clusters.
    """

    index: int
    controller: str
    base: Path = BASE

    @property
    def root(self) -> Path:
        """Folder of this cluster; everything it writes lies in here."""
        return self.base / str(self.index)

    @property
    def state_file(self) -> Path:
        """Who owns the cluster and what it looks like."""
        return self.root / "state.json"

    @property
    def process_file(self) -> Path:
        """One line for each process that was started: name, pid, start time."""
        return self.root / "processes.jsonl"

    @property
    def slurm_conf(self) -> Path:
        """The value of SLURM_CONF."""
        return self.root / "etc" / "slurm.conf"

    @property
    def logs(self) -> Path:
        """Folder of the daemons' logs."""
        return self.root / "log"

    @property
    def jobs(self) -> Path:
        """Working folder of jobs that name none."""
        return self.root / "jobs"

    @property
    def disks(self) -> Path:
        """Folder below which a mount is seen by the host and by all nodes."""
        return self.root / "disks"

    @property
    def devices(self) -> Path:
        """Folder of the made GPU devices."""
        return self.root / "dev"

    @property
    def spool(self) -> Path:
        """Spool folders of the slurmd's and the state of slurmctld."""
        return self.root / "spool"

    @property
    def munge_socket(self) -> Path:
        """Socket of this cluster's own munged."""
        return self.root / "munge" / "munge.sock"

    @property
    def mysql_socket(self) -> Path:
        """Socket of this cluster's own MariaDB."""
        return self.mysql_data / "mysql.sock"

    @property
    def mysql_data(self) -> Path:
        """Data folder of this cluster's own MariaDB."""
        return self.root / "mysql"

    @property
    def controller_port(self) -> int:
        """Port of slurmctld; below the range of ephemeral ports."""
        return 21000 + 10 * self.index

    @property
    def accounting_port(self) -> int:
        """Port of slurmdbd."""
        return 21001 + 10 * self.index

    @property
    def host_interface(self) -> str:
        """The host's end of the cable to the cluster's switch."""
        return f"htc{self.index}"

    @property
    def controller_address(self) -> str:
        """The host's address on the cluster's network."""
        return f"10.77.{self.index}.254"

    @property
    def accounting_address(self) -> str:
        """Where slurmdbd is reached; there is no network while the template is being made."""
        return self.controller_address if self.index else "127.0.0.1"

    def address(self, number: int) -> str:
        """Address of eth0 on the node ``number``, counted from 1."""
        return f"10.77.{self.index}.{number}"

    def node_dir(self, name: str) -> Path:
        """Folder with what is particular to one node."""
        return self.root / "nodes" / name
