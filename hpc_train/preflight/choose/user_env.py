"""What the user set by hand: checked against the nodes, and told where it cannot work."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Level
from hpc_train.preflight.choose.choose_hca import HcaChoice, gid_indices, ports_of
from hpc_train.preflight.choose.patterns import NameList
from hpc_train.preflight.inventory.interfaces import USABLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hpc_train.preflight.inventory.inventory import Interface, NodeInventory

__all__ = ["check_user_env"]


def check_user_env(
    nodes: list[NodeInventory],
    env: Mapping[str, str],
    hcas: HcaChoice,
) -> tuple[Finding, ...]:
    """Return a finding for each variable of the user that will not do what it says.

    What is wrong on every node alike is the variable's fault and names no node.
    """
    said = (
        *_nccl_sockets(nodes, env.get("NCCL_SOCKET_IFNAME")),
        *_gloo(nodes, env.get("GLOO_SOCKET_IFNAME")),
        *_hca_list(nodes, env.get("NCCL_IB_HCA"), hcas),
        *_transports(env, hcas),
        *_gid_index(nodes, env.get("NCCL_IB_GID_INDEX"), hcas),
        *_slow_switches(env),
        *_gdr(nodes, env),
        *_master(nodes, env.get("MASTER_ADDR")),
    )
    return tuple(_together(said, len(nodes)))


def _together(said: Iterable[Finding], count: int) -> Iterator[Finding]:
    groups: dict[tuple[str, Level], list[Finding]] = {}
    for item in said:
        groups.setdefault((item.part, item.level), []).append(item)
    for items in groups.values():
        where = {item.node for item in items}
        if count > 1 and len(where) == count and ALL_NODES not in where:
            yield replace(items[0], node=ALL_NODES)
        else:
            yield from items


def _say(part: str, level: Level, evidence: str, fix: str, node: str = ALL_NODES) -> Finding:
    return Finding(node=node, part=part, check="user_env", level=level, evidence=evidence, fix=fix)


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "0") not in ("", "0")


def _can_carry(interface: Interface) -> bool:
    return interface.state in ("up", "unknown") and bool(interface.ipv4 or interface.ipv6)


def _nccl_sockets(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value:
        return
    name, names = "NCCL_SOCKET_IFNAME", NameList.parse(value)
    for item in names.misread():
        yield _say(
            name, "fail", f"{item!r}: NCCL reads ^ and = once, at the start of the list",
            f"write {name}={'^' * names.negated}{'=' * names.exact} and then plain names",
        )  # fmt: skip
    for node in nodes:
        hits = [item for item in node.interfaces if names.matches(item.name)]
        up = [item for item in hits if _can_carry(item)]
        if not up:
            have = ", ".join(item.name for item in node.interfaces if _can_carry(item)) or "none"
            yield _say(
                name, "fail",
                f"{value!r} matches no interface that is up with an address (there: {have}); NCCL"
                " then fails with a garbage address",
                f"unset {name}, or name one of those", node.node,
            )  # fmt: skip
        elif (taken := _wrong_kind(up)) is not None:
            yield _say(
                name, "warn", f"{value!r} lets {taken.name} ({taken.kind}) in",
                f"unset {name}, or name the interface itself", node.node,
            )  # fmt: skip


def _wrong_kind(up: list[Interface]) -> Interface | None:
    """Return the first match that leads nowhere: `^docker0` alone lets lo back in."""
    return next((item for item in up if item.kind not in USABLE_KINDS), None)


def _gloo(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value:
        return
    name = "GLOO_SOCKET_IFNAME"
    if value[0] in "^=":
        yield _say(
            name, "fail", f"{value!r}: gloo takes full names; NCCL's {value[0]} crashes it",
            f"write {name}=eth0, or unset it",
        )  # fmt: skip
        return
    for node in nodes:
        for item in value.split(","):
            interface = node.interface(item.strip())
            if interface is None or not _can_carry(interface):
                what = "no such interface" if interface is None else "it is down or has no address"
                yield _say(
                    name, "fail", f"{item!r}: {what}", f"unset {name}", node.node
                )  # fmt: skip


def _hca_list(nodes: list[NodeInventory], value: str | None, hcas: HcaChoice) -> Iterator[Finding]:
    if not value:
        return
    name, names = "NCCL_IB_HCA", NameList.parse(value)
    for item in names.misread():
        yield _say(
            name, "fail", f"{item!r}: NCCL reads ^ and = once, at the start of the list",
            f"write {name}==mlx5_0,mlx5_1 or {name}=^mlx5_bond_0",
        )  # fmt: skip
    left_out = dict(hcas.left_out)
    for node in nodes:
        taken = [key for key in ports_of(node) if names.matches(*key)]
        alive = [key for key in taken if ports_of(node)[key].is_active]
        layers = {ports_of(node)[key].link_layer for key in alive}
        if not alive:
            yield _say(
                name, "fail", f"{value!r} matches no ACTIVE port: NCCL goes over TCP or hangs",
                f"unset {name}", node.node,
            )  # fmt: skip
        elif len(layers) > 1:
            yield _say(
                name, "fail",
                f"{value!r} mixes {' and '.join(sorted(str(layer) for layer in layers))}: they"
                " cannot connect to each other", f"unset {name}, or name those of one kind",
                node.node,
            )  # fmt: skip
        else:
            yield from _too_wide(node, value, names, alive, left_out)


def _too_wide(
    node: NodeInventory,
    value: str,
    names: NameList,
    alive: list[tuple[str, int]],
    left_out: dict[str, str],
) -> Iterator[Finding]:
    extra = names.by_prefix_only([hca.name for hca in node.hcas])
    if extra:
        yield _say(
            "NCCL_IB_HCA", "warn",
            f"{value!r} is a list of prefixes and also takes {', '.join(extra)}",
            f"write NCCL_IB_HCA=={value}", node.node,
        )  # fmt: skip
    for key in alive:
        label = f"{key[0]}:{key[1]}"
        if label in left_out:
            yield _say(
                "NCCL_IB_HCA", "warn", f"{value!r} takes {label}: {left_out[label]}",
                "unset NCCL_IB_HCA", node.node,
            )  # fmt: skip


def _transports(env: Mapping[str, str], hcas: HcaChoice) -> Iterator[Finding]:
    disabled = _is_set(env, "NCCL_IB_DISABLE")
    net = env.get("NCCL_NET", "")
    if disabled and net.lower() == "ib":
        yield _say(
            "NCCL_IB_DISABLE", "fail", "NCCL_IB_DISABLE=1 and NCCL_NET=IB contradict each other:"
            " no network is left", "unset one of them",
        )  # fmt: skip
    elif (disabled or net.lower() == "socket") and env.get("NCCL_IB_HCA"):
        yield _say(
            "NCCL_IB_HCA", "warn", f"NCCL_IB_HCA={env['NCCL_IB_HCA']} has no effect beside"
            f" {'NCCL_IB_DISABLE=1' if disabled else 'NCCL_NET=' + net}", "unset one of them",
        )  # fmt: skip
    if disabled and hcas.serves_all:
        yield _say(
            "NCCL_IB_DISABLE", "warn", "InfiniBand works on all nodes and is switched off by you:"
            " expect 2 to 5 times the step time", "unset NCCL_IB_DISABLE",
        )  # fmt: skip
    if disabled and env.get("NCCL_NET_PLUGIN", "none") != "none":
        yield _say(
            "NCCL_NET_PLUGIN", "note", "NCCL_IB_DISABLE=1 does not stop the net plugin"
            f" {env['NCCL_NET_PLUGIN']!r}", "set NCCL_NET=Socket to be sure of TCP",
        )  # fmt: skip


def _gid_index(
    nodes: list[NodeInventory],
    value: str | None,
    hcas: HcaChoice,
) -> Iterator[Finding]:
    if not value or not hcas.serves_all:
        return
    name = "NCCL_IB_GID_INDEX"
    if hcas.link_layer != "Ethernet":
        yield _say(
            name, "note", f"{name}={value} matters on RoCE alone; this is InfiniBand",
            f"unset {name}",
        )  # fmt: skip
        return
    for node in nodes:
        right = gid_indices(node, hcas.ports[node.node])
        if right != {_int(value)}:
            text = ", ".join(str(index) for index in sorted(i for i in right if i is not None))
            yield _say(
                name, "fail", f"{name}={value} is not the routable RoCE v2 GID (it is at {text}):"
                " ibv_modify_qp will time out",
                f"unset {name}: NCCL 2.21 and newer find it themselves", node.node,
            )  # fmt: skip


def _int(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def _slow_switches(env: Mapping[str, str]) -> Iterator[Finding]:
    for name, what in (
        ("NCCL_P2P_DISABLE", "GPUs of one node no longer talk directly"),
        ("NCCL_SHM_DISABLE", "ranks of one node talk over the network"),
    ):
        if _is_set(env, name):
            yield _say(name, "note", f"{name}={env[name]}: {what}, which is slow", f"unset {name}")


def _gdr(nodes: list[NodeInventory], env: Mapping[str, str]) -> Iterator[Finding]:
    if not env.get("NCCL_NET_GDR_LEVEL"):
        return
    for node in nodes:
        if node.hcas and not node.verbs.gpudirect:
            yield _say(
                "NCCL_NET_GDR_LEVEL", "note", "no nvidia_peermem and no DMA-BUF: GPUDirect will"
                " not be used whatever the level", "modprobe nvidia_peermem", node.node,
            )  # fmt: skip


def _master(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value or len(nodes) < 2:
        return
    try:
        loopback = ipaddress.ip_address(value).is_loopback
    except ValueError:
        loopback = value == "localhost"
    if loopback:
        yield _say(
            "MASTER_ADDR", "fail", f"MASTER_ADDR={value} means another machine on each node",
            "unset MASTER_ADDR, or name the first node",
        )  # fmt: skip
