"""munged, MariaDB and slurmdbd of one cluster.

A database takes seconds to be made and its tables seconds more. So this is done once a machine, and
every cluster starts on a copy of what came out.
"""

from __future__ import annotations

import fcntl
import re
import secrets
import shutil
import signal
import socket
from pathlib import Path

from tests.cluster import config
from tests.cluster.layout import Layout
from tests.cluster.processes import Processes
from tests.cluster.shell import ClusterError, run, wait_until
from tests.cluster.spec import ClusterSpec

__all__ = ["answers", "ensure_template", "start_database", "start_munge", "start_slurmdbd"]

_MARIADB_OPTIONS = (
    "--no-defaults",
    "--user=root",
    "--skip-networking",
    "--skip-grant-tables",
    "--skip-log-bin",
    "--performance-schema=0",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-use-native-aio=0",
    "--innodb-lock-wait-timeout=900",
    "--max-connections=50",
)


def answers(where: tuple[str, int] | str) -> bool:
    """Whether somebody accepts connections at an address and port, or at a Unix socket."""
    family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(1)
        return probe.connect_ex(where) == 0


def start_munge(layout: Layout, processes: Processes) -> None:
    """Start munged with a key and a socket of its own."""
    folder = layout.munge_socket.parent
    folder.mkdir(mode=0o755)
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(secrets.token_bytes(128))
    argv = ["munged", "--foreground", "--force", f"--key-file={key}"]
    argv += [f"--socket={layout.munge_socket}", f"--pid-file={folder}/munged.pid"]
    argv += [f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"]
    processes.start("munged", argv)


def start_database(layout: Layout, processes: Processes, template: Path) -> None:
    """Start MariaDB on a copy of the template."""
    run(["cp", "-a", "--sparse=always", "--reflink=auto", str(template), str(layout.mysql_data)])
    _start_mariadb(layout, processes)


def _start_mariadb(layout: Layout, processes: Processes) -> None:
    argv = ["mariadbd", *_MARIADB_OPTIONS, f"--datadir={layout.mysql_data}"]
    argv += [f"--socket={layout.mysql_socket}", f"--pid-file={layout.mysql_data}/mariadbd.pid"]
    processes.start("mariadbd", argv)


def start_slurmdbd(layout: Layout, processes: Processes) -> None:
    """Start slurmdbd as soon as the database and munged answer, and wait until it answers too.

    Raises:
        ClusterError: One of the three did not come up.
    """
    wait_until(lambda: answers(str(layout.munge_socket)), "munged", timeout_s=90)
    wait_until(lambda: answers(str(layout.mysql_socket)), "MariaDB", timeout_s=60)
    conf = layout.slurm_conf.parent / "slurmdbd.conf"
    conf.touch(mode=0o600)
    conf.write_text(config.slurmdbd_conf(layout))
    # slurmdbd looks for its configuration beside slurm.conf.
    env = {"SLURM_CONF": str(layout.slurm_conf), "MYSQL_UNIX_PORT": str(layout.mysql_socket)}
    processes.start("slurmdbd", ["slurmdbd", "-D"], env=env)
    address = (layout.accounting_address, layout.accounting_port)
    wait_until(lambda: answers(address), "slurmdbd", timeout_s=60)


def ensure_template(layout: Layout) -> Path:
    """The data folder that clusters start from; made on first use (some ten seconds).

    Args:
        layout: Of any cluster: tells the base folder and the controller's name.

    Returns:
        A folder to copy, with Slurm's tables and the default cluster in it.
    """
    template = layout.base / f"mariadb-{_versions()}"
    layout.base.mkdir(parents=True, exist_ok=True)
    with (layout.base / "template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            _make_template(Layout(0, layout.controller, layout.base), template)
    return template


def _versions() -> str:
    versions = run(["mariadbd", "--version"]).stdout + run(["slurmctld", "-V"]).stdout
    return "-".join(re.findall(r"\d+(?:\.\d+)+", versions))


def _make_template(layout: Layout, template: Path) -> None:
    processes = Processes(layout.process_file, layout.logs)
    processes.kill_everything()
    shutil.rmtree(layout.root, ignore_errors=True)
    for folder in (layout.root, layout.logs, layout.slurm_conf.parent):
        folder.mkdir()
    spec = ClusterSpec()
    layout.slurm_conf.write_text(config.slurm_conf(spec, layout))
    options = ["--no-defaults", "--user=root", "--skip-test-db", "--innodb-log-file-size=8M"]
    run(["mariadb-install-db", *options, f"--datadir={layout.mysql_data}"], timeout_s=120)
    layout.mysql_data.chmod(0o700)
    try:
        start_munge(layout, processes)
        _start_mariadb(layout, processes)
        start_slurmdbd(layout, processes)
        env = {"SLURM_CONF": str(layout.slurm_conf)}
        run(["sacctmgr", "-i", "add", "cluster", spec.cluster_name], env=env, timeout_s=60)
        processes.stop("slurmdbd")
        # A clean stop, so that a copy starts without recovery.
        processes.stop("mariadbd", signal.SIGTERM, timeout_s=60)
    except ClusterError as error:
        raise ClusterError(f"cannot make the database template: {error}") from error
    finally:
        processes.kill_everything()
    for leftover in ("mysql.sock", "mariadbd.pid"):
        (layout.mysql_data / leftover).unlink(missing_ok=True)
    layout.mysql_data.rename(template)
    shutil.rmtree(layout.root)
