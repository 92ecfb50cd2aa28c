"""What can go wrong on a cluster, done to a node, a cable, a disk or the controller.

Every fault is undone by ``Cluster.reset()``, which the fixtures call after each Slurm test.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tests.cluster import config
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import SWITCH, entering
from tests.cluster.processes import alive, kill_all, stopped
from tests.cluster.shell import ClusterError, run, wait_until

__all__ = [
    "change_partition",
    "cut_cable",
    "drain",
    "find",
    "kill_node",
    "late_names",
    "limit_memlock",
    "lossy_cable",
    "pause",
    "reconfigure",
    "repair_cable",
    "resolve",
    "restore_cable",
    "resume",
    "revive_node",
    "slow_cable",
    "small_disk",
    "small_shm",
    "stop_controller",
    "unpause",
]

_FORKS = 5
_BIRTH_S = 0.1


# --- a whole node


def kill_node(cluster: Cluster, node: str, *, silently: bool = False) -> None:
    """Kill slurmd and every other process of a node.

    Args:
        silently: Pull the cable first, as when the power fails: nobody gets a FIN or RST.

    Raises:
        ClusterError: Processes are born faster than they die.
    """
    if silently:
        cut_cable(cluster, node, end="switch")
    for _ in range(_FORKS):
        pids = cluster.pids(node)
        if not pids:
            time.sleep(_BIRTH_S)  # one that was being born was in no list
            pids = cluster.pids(node)
        if not pids:
            cluster.processes.reap()
            return
        kill_all(pids)
    raise ClusterError(f"{node} still has the processes {cluster.pids(node)}")


def revive_node(cluster: Cluster, node: str, *, timeout_s: float = 180) -> None:
    """Bring a killed node back and wait until Slurm has it again.

    Raises:
        ClusterError: It does not register in time.
    """
    restore_cable(cluster, node)
    if cluster.processes.find(f"slurmd-{node}") is None:
        cluster.start_slurmd(node)
    cluster.bring_back([node], timeout_s=timeout_s)


def drain(cluster: Cluster, node: str, reason: str = "test") -> None:
    """Let no new job onto a node."""
    cluster.scontrol("update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")


def resume(cluster: Cluster, node: str) -> None:
    """Take a node back from down or drained."""
    cluster.scontrol("update", f"NodeName={node}", "State=RESUME")


# --- cables


def _inside(cluster: Cluster, node: str, *argv: str, stdin: str = "") -> None:
    run([*entering(cluster.nodes[node].anchor_pid, mounts=False), *argv], stdin=stdin)


def _switch(cluster: Cluster, *argv: str) -> None:
    switch = cluster.processes.find(SWITCH)
    if switch is None:
        raise ClusterError("the switch is gone: down and up again")
    run([*entering(switch.pid, mounts=False), *argv])


def _port(cluster: Cluster, node: str) -> str:
    return f"port{cluster.nodes[node].number}"


def cut_cable(cluster: Cluster, node: str, *, end: Literal["node", "switch"] = "node") -> None:
    """Cut eth0 of a node.

    Args:
        end: ``node``: the interface is down and its routes are gone, so sending fails at once.
            ``switch``: the carrier is lost and packets vanish, as when a cable is pulled.
    """
    cluster.on_reset(lambda: restore_cable(cluster, node))
    if end == "node":
        _inside(cluster, node, "ip", "link", "set", "eth0", "down")
    else:
        _switch(cluster, "ip", "link", "set", _port(cluster, node), "down")


def restore_cable(cluster: Cluster, node: str) -> None:
    """Undo :func:`cut_cable`."""
    _inside(cluster, node, "ip", "link", "set", "eth0", "up")
    _switch(cluster, "ip", "link", "set", _port(cluster, node), "up")


def slow_cable(cluster: Cluster, node: str, rate_mbit_s: float) -> None:
    """Shape eth0 of a node, both ways."""
    cluster.on_reset(lambda: repair_cable(cluster, node))
    shape = ["tbf", "rate", f"{rate_mbit_s:g}mbit", "burst", "64kb", "latency", "400ms"]
    _inside(cluster, node, "tc", "qdisc", "replace", "dev", "eth0", "root", *shape)
    _switch(cluster, "tc", "qdisc", "replace", "dev", _port(cluster, node), "root", *shape)


def lossy_cable(cluster: Cluster, node: str, percent: int) -> None:
    """Drop that share of the packets on eth0 of a node, each way, at random."""
    cluster.on_reset(lambda: repair_cable(cluster, node))
    drop = f"numgen random mod 100 < {percent} drop" if percent < 100 else "drop"
    rules = (
        "add table inet faults\n"
        "delete table inet faults\n"
        "table inet faults {\n"
        "  chain arriving { type filter hook prerouting priority -300;"
        f' iifname "eth0" {drop}; }}\n'
        "  chain leaving { type filter hook postrouting priority -300;"
        f' oifname "eth0" {drop}; }}\n'
        "}\n"
    )
    _inside(cluster, node, "nft", "-f", "-", stdin=rules)


def repair_cable(cluster: Cluster, node: str) -> None:
    """Undo :func:`slow_cable` and :func:`lossy_cable`; nothing happens when there is neither."""
    _inside(
        cluster, node, "nft", "-f", "-", stdin="add table inet faults\ndelete table inet faults\n"
    )
    _inside(cluster, node, "tc", "qdisc", "replace", "dev", "eth0", "root", "noqueue")
    _switch(cluster, "tc", "qdisc", "replace", "dev", _port(cluster, node), "root", "noqueue")


def resolve(cluster: Cluster, node: str, names: Mapping[str, str]) -> None:
    """Let names resolve to other addresses on one node, for example to 127.0.0.1."""
    file = cluster.layout.node_dir(node) / "etc/hosts"
    usual = config.hosts(cluster.spec, cluster.layout)
    cluster.on_reset(lambda: _write(file, usual))
    # Written in place: the node has this very file mounted over its /etc/hosts.
    _write(file, "".join(f"{address} {name}\n" for name, address in names.items()) + usual)


def _write(file: Path, text: str) -> None:
    file.write_text(text)


# --- processes


def find(cluster: Cluster, node: str, pattern: str) -> list[int]:
    """Processes of a node whose command line matches a regular expression, oldest first."""
    found = []
    for pid in sorted(cluster.pids(node)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            if re.search(pattern, line.decode(errors="replace")):
                found.append(pid)
    return found


def pause(cluster: Cluster, node: str, pattern: str) -> list[int]:
    """SIGSTOP the processes that :func:`find` finds; a hang, seen from outside.

    Raises:
        ClusterError: None matches.
    """
    pids = find(cluster, node, pattern)
    if not pids:
        raise ClusterError(f"no process on {node} matches {pattern!r}")
    cluster.on_reset(lambda: unpause(pids))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(stopped(pid) for pid in pids), f"{pids} to stop", timeout_s=60)
    return pids


def unpause(pids: list[int]) -> None:
    """SIGCONT these; those that have ended meanwhile are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def limit_memlock(cluster: Cluster, node: str, limit_kib: int) -> None:
    """Lower RLIMIT_MEMLOCK for what the slurmd of a node starts from now on.

    Raises:
        ClusterError: The node has no slurmd.
    """
    slurmd = cluster.processes.find(f"slurmd-{node}")
    if slurmd is None:
        raise ClusterError(f"no slurmd runs on {node}")
    # The soft limit alone, as a lowered hard one could not be raised again everywhere.
    prlimit = ["prlimit", f"--pid={slurmd.pid}"]
    usual = run([*prlimit, "--memlock", "--raw", "--noheadings", "--output=HARD"]).stdout.strip()
    cluster.on_reset(lambda: run([*prlimit, f"--memlock={usual}:"], check=alive(slurmd)))
    run([*prlimit, f"--memlock={limit_kib * 1024}:"])


# --- disks


def small_disk(cluster: Cluster, name: str, size_mib: int) -> Path:
    """A file system of that size, the same for the host and all nodes; to be filled.

    Returns:
        Its folder.
    """
    folder = cluster.layout.disks / name
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)])
    cluster.on_reset(lambda: _unmount(folder))
    return folder


def _unmount(folder: Path) -> None:
    run(["umount", "--lazy", str(folder)])
    folder.rmdir()


def late_names(cluster: Cluster, folder: Path, *, seconds: int = 60) -> None:
    """Each node mounts an empty folder of the host, and remembers which names were not there.

    As an NFS client does (nfs(5), lookupcache=all): a node that has looked for a name in vain goes
    on saying for `seconds` that there is none, though another node has made it meanwhile. A name
    that it has not looked for is seen at once, and what is in a file whenever it is opened. The
    host sees everything.
    """
    late = f"negative_timeout={seconds},entry_timeout={seconds},attr_timeout=0"
    for node in cluster.nodes.values():
        # Not in the node's network: the mount is no process of the node's, and outlives them.
        inside = ["nsenter", f"--target={node.anchor_pid}", "--mount"]
        # By another path: bindfs 1.18 waits for itself if it finds its own mount at its source.
        behind = Path(tempfile.mkdtemp(dir=cluster.layout.node_dir(node.name)))
        run([*inside, "mount", "--bind", str(folder), str(behind)])
        run([*inside, "bindfs", "-o", late, str(behind), str(folder)])
        for mount in (behind, folder):
            undo = [*inside, "umount", "--lazy", str(mount)]
            cluster.on_reset(functools.partial(run, undo))


def small_shm(cluster: Cluster, node: str, size_mib: int) -> None:
    """Give a node a small /dev/shm of its own."""
    cluster.node_exec(
        node, ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", "/dev/shm"]
    )
    cluster.on_reset(lambda: cluster.node_exec(node, ["umount", "--lazy", "/dev/shm"]))


# --- the controller


def stop_controller(cluster: Cluster, sig: signal.Signals = signal.SIGKILL) -> None:
    """End slurmctld; ``cluster.start_controller()`` starts it again on the state it left.

    It writes its state up to 5 s after a change. So a job that started less than that before a
    SIGKILL is started once more, refused by its node, and held (``launch_failed_requeued_held``);
    SIGTERM lets it write everything first.
    """
    cluster.processes.stop("slurmctld", sig)


def change_partition(cluster: Cluster, partition: str = "train", **fields: object) -> None:
    """``scontrol update PartitionName=…``, for example ``GraceTime=5`` or ``PreemptMode="CANCEL"``.

    Cheaper than a cluster of its own.
    """
    words = [f"{name}={value}" for name, value in fields.items()]
    cluster.on_reset(lambda: cluster.scontrol("reconfigure"))
    cluster.scontrol("update", f"PartitionName={partition}", *words)


def reconfigure(cluster: Cluster, **fields: Any) -> None:
    """Change fields of the spec while the cluster runs, for example ``slurmd_timeout_s=10``."""
    usual = cluster.spec
    cluster.on_reset(lambda: _reconfigure(cluster, config.slurm_conf(usual, cluster.layout)))
    changed = dataclasses.replace(usual, **fields)
    _reconfigure(cluster, config.slurm_conf(changed, cluster.layout))


def _reconfigure(cluster: Cluster, text: str) -> None:
    cluster.layout.slurm_conf.write_text(text)
    cluster.scontrol("reconfigure")
