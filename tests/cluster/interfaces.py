"""More network interfaces on a node, and other texts in the files that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tests.cluster.cluster import Cluster
from tests.cluster.nodes import SWITCH, entering
from tests.cluster.shell import run, wait_until

__all__ = ["IPOIB", "add_interface", "describe_interface", "remove_interface"]

# ARPHRD_INFINIBAND of linux/if_arp.h: what /sys/class/net/ib0/type says.
IPOIB = {"type": "32", "speed": "400000"}


def add_interface(
    cluster: Cluster,
    node: str,
    name: str,
    address: str,
    *,
    kind: Literal["cable", "bridge"] = "cable",
    index: int | None = None,
    files: Mapping[str, str] | None = None,
) -> None:
    """Give a node another interface, up, with an address.

    Args:
        cluster: The cluster.
        node: Its node.
        name: For example ``ib0`` or ``docker0``.
        address: With its prefix length, for example ``10.78.0.1/24``.
        kind: ``cable``: plugged into the cluster's switch, so nodes with addresses in one subnet
            reach each other over it. ``bridge``: leads nowhere, as Docker's does.
        index: Interface index; eth0 has 10. Default: the kernel's choice.
        files: Texts for :func:`describe_interface`, for example :data:`IPOIB`.
    """
    anchor_pid = cluster.nodes[node].anchor_pid
    number = [] if index is None else ["index", str(index)]
    inside = entering(anchor_pid, mounts=False)
    if kind == "cable":
        switch = cluster.processes.find(SWITCH)
        assert switch is not None
        port = f"{cluster.nodes[node].number}{name}"
        peer = ["peer", "name", port, "netns", str(switch.pid)]
        run([*inside, "ip", "link", "add", name, *number, "type", "veth", *peer])
        at_switch = entering(switch.pid, mounts=False)
        run([*at_switch, "ip", "link", "set", port, "master", "br0", "up"])
    else:
        run([*inside, "ip", "link", "add", name, *number, "type", "bridge"])
        run([*inside, "ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b"])
        run([*inside, "ip", "link", "set", f"{name}a", "master", name, "up"])
        run([*inside, "ip", "link", "set", f"{name}b", "up"])
    cluster.on_reset(lambda: remove_interface(cluster, node, name))
    run([*inside, "ip", "addr", "add", address, "dev", name])
    run([*inside, "ip", "link", "set", name, "up"])
    wait_until(lambda: _is_up(cluster, node, name), f"{name} on {node}", timeout_s=60)
    for file, text in (files or {}).items():
        describe_interface(cluster, node, name, file, text)


def _is_up(cluster: Cluster, node: str, name: str) -> bool:
    state = cluster.node_exec(node, ["cat", f"/sys/class/net/{name}/operstate"]).stdout
    return state.strip() == "up"


def remove_interface(cluster: Cluster, node: str, name: str) -> None:
    """Take an added interface away; nothing happens when it is gone."""
    inside = entering(cluster.nodes[node].anchor_pid, mounts=False)
    for made in (name, f"{name}a"):
        run([*inside, "ip", "link", "delete", made], check=False)


def describe_interface(cluster: Cluster, node: str, name: str, file: str, text: str) -> None:
    """Let /sys/class/net/NAME/FILE say something else on a node; call again to change it."""
    made = cluster.layout.node_dir(node) / "net" / name / file
    mounted = made.exists()
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(f"{text}\n")
    if not mounted:
        target = f"/sys/class/net/{name}/{file}"
        cluster.node_exec(node, ["mount", "--bind", str(made), target])
        cluster.on_reset(lambda: _uncover(cluster, node, target))
        cluster.on_reset(lambda: made.unlink())


def _uncover(cluster: Cluster, node: str, target: str) -> None:
    cluster.node_exec(node, ["umount", target])
