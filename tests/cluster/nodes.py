"""Nodes: an own network, host name and mount table each, held open by one sleeping process.

Nothing is given a name under /run/netns: when the last process of a node ends, the kernel takes its
network, its mounts and its cables away, also after a crash of whoever started it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import config
from tests.cluster.layout import Layout
from tests.cluster.processes import Processes
from tests.cluster.shell import ClusterError, run, wait_until
from tests.cluster.spec import ClusterSpec

__all__ = ["SWITCH", "Node", "entering", "known_nodes", "raise_nodes"]

SWITCH = "switch"

# A fresh sysfs shows the node's own /sys/class/net, but hides the cgroup tree, without which slurmd
# does not start; so that is kept aside and put back. /sys/class becomes a folder of ours, so that
# /sys/class/infiniband can be made and changed, with the node's real interfaces put back into it.
_SET_UP_NODE = r"""
set -eu
dir=$1
hostname "$2"
ip link set lo up
if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup "$dir/cgroup"; fi
mount -t sysfs sysfs /sys
if [ -d /sys/fs/cgroup ]; then mount --rbind "$dir/cgroup" /sys/fs/cgroup; fi
mount --bind /sys/class "$dir/class-real"
mount --bind "$dir/class" /sys/class
mount --bind "$dir/class-real/net" /sys/class/net
for file in hosts nsswitch.conf resolv.conf hostname; do
    if [ -e "/etc/$file" ]; then mount --bind "$dir/etc/$file" "/etc/$file"; fi
done
touch "$dir/ready"
exec sleep infinity
"""
_SET_UP_SWITCH = r"""
set -eu
ip link add br0 type bridge
ip link set br0 up
ip link set lo up
touch "$1/ready"
exec sleep infinity
"""


@dataclasses.dataclass(frozen=True)
class Node:
    """One node: ``anchor_pid`` is the sleeping process that holds its namespaces."""

    name: str
    number: int
    address: str
    anchor_pid: int


def entering(anchor_pid: int, *, mounts: bool = True) -> list[str]:
    """The words that, put before a command, run it inside a node (or the switch)."""
    return ["nsenter", f"--target={anchor_pid}", "--net", *(["--mount", "--uts"] if mounts else [])]


def raise_nodes(spec: ClusterSpec, layout: Layout, processes: Processes) -> dict[str, Node]:
    """Make the switch and all nodes, and plug in every cable; no slurmd yet.

    Returns:
        The nodes by name, in the order of their addresses.
    """
    switch_dir = layout.root / SWITCH
    switch_dir.mkdir()
    unshare = ["unshare", "--net"]
    processes.start(SWITCH, [*unshare, "sh", "-c", _SET_UP_SWITCH, SWITCH, str(switch_dir)])
    for name in spec.names:
        folder = layout.node_dir(name)
        host = f"{spec.host_prefix}{name}"
        _write_files(folder, host, config.hosts(spec, layout))
        # "slave": what the host mounts below Layout.disks shows up here, nothing goes back.
        argv = [*unshare, "--uts", "--mount", "--propagation=slave", "sh", "-c", _SET_UP_NODE]
        processes.start(f"anchor-{name}", [*argv, f"anchor-{name}", str(folder), host])
    for folder in (switch_dir, *map(layout.node_dir, spec.names)):
        wait_until((folder / "ready").exists, f"the namespaces of {folder.name}", timeout_s=90)
    nodes = known_nodes(spec, layout, processes)
    _plug_in(layout, _anchor(processes, SWITCH), list(nodes.values()))
    return nodes


def known_nodes(spec: ClusterSpec, layout: Layout, processes: Processes) -> dict[str, Node]:
    """The nodes of a cluster that stands, by name."""
    return {
        name: Node(name, number, layout.address(number), _anchor(processes, f"anchor-{name}"))
        for number, name in enumerate(spec.names, start=1)
    }


def _anchor(processes: Processes, name: str) -> int:
    started = processes.find(name)
    if started is None:
        raise ClusterError(f"the process that holds {name} is gone: down and up again")
    return started.pid


def _write_files(folder: Path, name: str, hosts: str) -> None:
    for part in ("cgroup", "class-real", "class", "etc"):
        (folder / part).mkdir(parents=True)
    _copy_links(Path("/sys/class"), folder / "class")
    files: Mapping[str, str] = {
        "hosts": hosts,
        # Without "dns" no look-up leaves the node, as on a cluster whose hosts files are complete.
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
        "resolv.conf": "",
        "hostname": f"{name}\n",
    }
    for file, text in files.items():
        (folder / "etc" / file).write_text(text)


def _copy_links(source: Path, target: Path) -> None:
    # Only the links: reading some files of sysfs does something (zram-control/hot_add).
    for folder in source.iterdir():
        (target / folder.name).mkdir()
        if folder.name != "net":
            for entry in filter(Path.is_symlink, folder.iterdir()):
                (target / folder.name / entry.name).symlink_to(entry.readlink())


def _plug_in(layout: Layout, switch_pid: int, nodes: Sequence[Node]) -> None:
    host = [f"link add {layout.host_interface} type veth peer name host netns {switch_pid}"]
    host += [f"addr add {layout.controller_address}/24 dev {layout.host_interface}"]
    host += [f"link set {layout.host_interface} up"]
    switch = ["link set host master br0 up"]
    for node in nodes:
        # Index 10 leaves room for interfaces that come before eth0, as docker0 may.
        inside = [
            f"link add eth0 index 10 type veth peer name port{node.number} netns {switch_pid}",
            f"addr add {node.address}/24 dev eth0",
            "link set eth0 up",
        ]
        _batch(node.anchor_pid, inside)
        switch.append(f"link set port{node.number} master br0 up")
    run(["ip", "-batch", "-"], stdin="\n".join(host) + "\n")
    _batch(switch_pid, switch)


def _batch(anchor_pid: int, lines: Sequence[str]) -> None:
    argv = [*entering(anchor_pid, mounts=False), "ip", "-batch", "-"]
    run(argv, stdin="\n".join(lines) + "\n")
