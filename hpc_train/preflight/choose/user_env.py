"""What the user set by hand: checked against the nodes, and told where it cannot work."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Level
from hpc_train.preflight.choose.choose_hca import (
    HcaChoice,
    PortName,
    gid_indices,
    port_label,
    ports_of,
)
from hpc_train.preflight.choose.patterns import NameList
from hpc_train.preflight.inventory.inventory import Interface, NodeInventory

GLOO = "GLOO_SOCKET_IFNAME"


def has_switched_off_ib(env: Mapping[str, str]) -> bool:
    """Return whether the user wants TCP."""
    return _is_set(env, "NCCL_IB_DISABLE") or env.get("NCCL_NET", "").lower() == "socket"


def check_user_env(
    nodes: list[NodeInventory], env: Mapping[str, str], hcas: HcaChoice
) -> tuple[Finding, ...]:
    """Return a finding for each variable of the user that will not do what it says.

    What is wrong on every node alike is the variable's fault and names no node.
    """
    said = (
        *_nccl_sockets(nodes, env.get("NCCL_SOCKET_IFNAME")),
        *_gloo(nodes, env.get(GLOO)),
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
    return Finding(node, part, "user_env", level, evidence, fix)


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "0") not in ("", "0")


def _misread(name: str, names: NameList, right: str) -> Iterator[Finding]:
    for item in names.misread():
        text = f"{item!r}: NCCL reads ^ and = once, at the start of the list"
        yield _say(name, "fail", text, f"write {right}")


def _nccl_sockets(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value:
        return
    name, names = "NCCL_SOCKET_IFNAME", NameList.parse(value)
    start = f"{name}={'^' * names.negated}{'=' * names.exact}"
    yield from _misread(name, names, f"{start} and then plain names")
    for node in nodes:
        ready = [item for item in node.interfaces if item.is_ready]
        taken = [item for item in ready if names.matches(item.name)]
        # `^docker0` alone lets lo back in, which leads nowhere.
        wrong = next((item for item in taken if not item.is_between_nodes), None)
        if not taken:
            have = ", ".join(item.name for item in ready) or "none"
            text = f"{value!r} matches no interface that is up with an address (there: {have});"
            text += " NCCL then fails with a garbage address"
            # Of one node that has none of that name, up or down, the variable is to blame.
            is_known = any(names.matches(item.name) for item in node.interfaces)
            where = node.node if is_known or len(nodes) > 1 else ALL_NODES
            yield _say(name, "fail", text, f"unset {name}, or name one of those", where)
        elif wrong is not None:
            text = f"{value!r} lets {wrong.name} ({wrong.kind}) in"
            yield _say(name, "warn", text, f"unset {name}, or name the interface itself", node.node)


def gloo_on_one_node(interfaces: Iterable[Interface], value: str) -> Iterator[Finding]:
    """A finding for each name of GLOO_SOCKET_IFNAME of which gloo has no address there.

    Between ranks of one node also an interface works that is down, or leads nowhere.
    """
    if value[0] in "^=":
        yield _as_nccl_has_it(value)
        return
    with_address = [item.name for item in interfaces if item.ipv4 or item.ipv6]
    if not with_address:
        return  # not to be read here
    for item in value.split(","):
        name = item.strip().partition(":")[0]  # eth0:1 is another address of eth0
        if name not in with_address:
            there = ", ".join(with_address)
            text = f"{item!r}: no such interface with an address (there: {there})"
            yield _say(GLOO, "fail", text, f"unset {GLOO}, or name one of those")


def _as_nccl_has_it(value: str) -> Finding:
    text = f"{value!r}: gloo takes full names; NCCL's {value[0]} crashes it"
    return _say(GLOO, "fail", text, f"write {GLOO}=eth0, or unset it")


def _gloo(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value:
        return
    if value[0] in "^=":
        yield _as_nccl_has_it(value)
        return
    for node in nodes:
        for item in value.split(","):
            interface = node.interface(item.strip())
            if interface is None or not interface.is_ready:
                what = "it is down or has no address" if interface else "no such interface"
                where = node.node if interface or len(nodes) > 1 else ALL_NODES
                yield _say(GLOO, "fail", f"{item!r}: {what}", f"unset {GLOO}", where)


def _hca_list(nodes: list[NodeInventory], value: str | None, hcas: HcaChoice) -> Iterator[Finding]:
    if not value:
        return
    name, names = "NCCL_IB_HCA", NameList.parse(value)
    yield from _misread(name, names, f"{name}==mlx5_0,mlx5_1 or {name}=^mlx5_bond_0")
    for node in nodes:
        ports = ports_of(node)
        alive = [key for key in ports if names.matches(*key) and ports[key].is_active]
        layers = sorted({str(ports[key].link_layer) for key in alive})
        if not alive:
            text = f"{value!r} matches no ACTIVE port: NCCL goes over TCP or hangs"
            yield _say(name, "fail", text, f"unset {name}", node.node)
        elif len(layers) > 1:
            text = f"{value!r} mixes {' and '.join(layers)}: they cannot connect to each other"
            yield _say(name, "fail", text, f"unset {name}, or name those of one kind", node.node)
        else:
            yield from _too_wide(node, value, alive, dict(hcas.left_out))


def _too_wide(
    node: NodeInventory, value: str, alive: list[PortName], left_out: dict[str, str]
) -> Iterator[Finding]:
    name = "NCCL_IB_HCA"
    extra = NameList.parse(value).by_prefix_only([hca.name for hca in node.hcas])
    if extra:
        text = f"{value!r} is a list of prefixes and also takes {', '.join(extra)}"
        yield _say(name, "warn", text, f"write {name}=={value}", node.node)
    for label in map(port_label, alive):
        if label in left_out:
            text = f"{value!r} takes {label}: {left_out[label]}"
            yield _say(name, "warn", text, f"unset {name}", node.node)


def _transports(env: Mapping[str, str], hcas: HcaChoice) -> Iterator[Finding]:
    disable, net = "NCCL_IB_DISABLE", env.get("NCCL_NET", "")
    is_disabled = _is_set(env, disable)
    if is_disabled and net.lower() == "ib":
        text = f"{disable}=1 and NCCL_NET=IB contradict each other: no network is left"
        yield _say(disable, "fail", text, "unset one of them")
    elif has_switched_off_ib(env) and env.get("NCCL_IB_HCA"):
        other = f"{disable}=1" if is_disabled else f"NCCL_NET={net}"
        text = f"NCCL_IB_HCA={env['NCCL_IB_HCA']} has no effect beside {other}"
        yield _say("NCCL_IB_HCA", "warn", text, "unset one of them")
    if is_disabled and hcas.serves_all:
        text = "InfiniBand works on all nodes and is switched off by you:"
        text += " expect 2 to 5 times the step time"
        yield _say(disable, "warn", text, f"unset {disable}")
    if is_disabled and (plugin := env.get("NCCL_NET_PLUGIN", "none")) != "none":
        text = f"{disable}=1 does not stop the net plugin {plugin!r}"
        yield _say("NCCL_NET_PLUGIN", "note", text, "set NCCL_NET=Socket to be sure of TCP")


def _gid_index(nodes: list[NodeInventory], value: str | None, hcas: HcaChoice) -> Iterator[Finding]:
    if not value or not hcas.serves_all:
        return
    name = "NCCL_IB_GID_INDEX"
    if hcas.link_layer != "Ethernet":
        text = f"{name}={value} matters on RoCE alone; this is InfiniBand"
        yield _say(name, "note", text, f"unset {name}")
        return
    for node in nodes:
        right = gid_indices(node, hcas.ports[node.node])
        if right != {int(value) if value.isdigit() else -1}:
            places = ", ".join(map(str, sorted(index for index in right if index is not None)))
            text = f"{name}={value} is not the routable RoCE v2 GID (it is at {places}):"
            text += " ibv_modify_qp will time out"
            fix = f"unset {name}: NCCL 2.21 and newer find it themselves"
            yield _say(name, "fail", text, fix, node.node)


def _slow_switches(env: Mapping[str, str]) -> Iterator[Finding]:
    for name, what in (
        ("NCCL_P2P_DISABLE", "GPUs of one node no longer talk directly"),
        ("NCCL_SHM_DISABLE", "ranks of one node talk over the network"),
    ):
        if _is_set(env, name):
            yield _say(name, "note", f"{name}={env[name]}: {what}, which is slow", f"unset {name}")


def _gdr(nodes: list[NodeInventory], env: Mapping[str, str]) -> Iterator[Finding]:
    name = "NCCL_NET_GDR_LEVEL"
    text = "no nvidia_peermem and no DMA-BUF: GPUDirect will not be used whatever the level"
    for node in nodes:
        if env.get(name) and node.hcas and not node.verbs.gpudirect:
            yield _say(name, "note", text, "modprobe nvidia_peermem", node.node)


def _master(nodes: list[NodeInventory], value: str | None) -> Iterator[Finding]:
    if not value or len(nodes) < 2:
        return
    try:
        is_loopback = ipaddress.ip_address(value).is_loopback
    except ValueError:
        is_loopback = value == "localhost"
    if is_loopback:
        text = f"MASTER_ADDR={value} means another machine on each node"
        yield _say("MASTER_ADDR", "fail", text, "unset MASTER_ADDR, or name the first node")
