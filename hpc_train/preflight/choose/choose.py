"""From the inventories of all nodes to one set of NCCL and gloo variables, each with its reason.

What the user sets wins; it is checked in `user_env`, and told where it cannot work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Thresholds
from hpc_train.preflight.choose.choose_hca import (
    HcaChoice,
    choose_hcas,
    is_rail_fabric,
    port_label,
)
from hpc_train.preflight.choose.choose_socket import SocketChoice, choose_socket
from hpc_train.preflight.choose.patterns import NameList
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.choose.user_env import check_user_env, has_switched_off_ib
from hpc_train.preflight.inventory.inventory import NodeInventory

# What users reported for InfiniBand against TCP: 2.51 -> 5.72 s a step; 25 -> 5 GB/s.
TCP_COST = "a step takes 2 to 5 times as long as over InfiniBand"

# What of NCCL's log tells the rings, the transports and the variables that it has read.
NCCL_DEBUG_SUBSYS = "INIT,GRAPH,NET,ENV"

# What the preflight's own collective gets beside the choice, and no training does. The last one:
# NCCL 2.30 ignores a missing HCA by default, and then spins.
FOR_THE_TEST = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": NCCL_DEBUG_SUBSYS,
    "NCCL_IGNORE_NET_MISMATCH": "0",
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One environment variable."""

    name: str  # `NCCL_IB_HCA`
    value: str  # for every node that has no value of its own in `Choice.per_node`
    reason: str  # one line
    source: str = "chosen"  # `chosen`, `profile` or `user`


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to export on all nodes."""

    environment: tuple[Setting, ...] = ()  # for every rank
    # Node -> {name: value} where a node's value differs from `environment`
    per_node: dict[str, dict[str, str]] = field(default_factory=dict)
    # Numeric address of each node on the chosen interface
    addresses: dict[str, str] = field(default_factory=dict)
    interfaces: dict[str, str] = field(default_factory=dict)  # name of that interface by node
    hcas: HcaChoice = field(default_factory=HcaChoice)  # the ports behind it
    # `InfiniBand`, `RoCE` or `TCP`: what a ring over several nodes should use
    transport: str = "TCP"
    # What has to be said about the choice and about the user's own variables
    findings: tuple[Finding, ...] = ()


def choose(
    nodes: list[NodeInventory],
    env: Mapping[str, str],
    profile: SiteProfile | None = None,
    thresholds: Thresholds | None = None,
) -> Choice:
    """Return one choice for all nodes of the job, at least one.

    Of the user's environment only NCCL_*, GLOO_* and MASTER_ADDR are read; of the thresholds,
    `memlock_mib` says which nodes can use their HCAs.
    """
    profile = profile or SiteProfile()
    socket = choose_socket(nodes, profile)
    hcas = choose_hcas(nodes, profile, (thresholds or Thresholds()).memlock_mib)
    settings = _Settings(nodes=nodes, env=env, profile=profile)
    if socket is not None:
        _socket_settings(settings, socket)
    if any(node.hcas for node in nodes):
        _hca_settings(settings, hcas)
    for name, value in profile.environment.items():
        settings.put(name, value, _OF_PROFILE, source="profile")
    return Choice(
        environment=tuple(settings.items),
        per_node=settings.per_node,
        addresses=socket.addresses if socket else {},
        interfaces=socket.names if socket else {},
        hcas=hcas,
        transport=_transport(hcas, env),
        findings=(
            *_socket_findings(socket),
            *_hca_findings(nodes, hcas),
            *check_user_env(nodes, env, hcas),
        ),
    )


_OF_PROFILE = "the site's profile sets it"


@dataclass
class _Settings:
    nodes: list[NodeInventory]
    env: Mapping[str, str]
    profile: SiteProfile
    items: list[Setting] = field(default_factory=list)
    per_node: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, name: str, value: str, reason: str, *, source: str = "chosen") -> str:
        """Add a variable, unless the user or the site's profile says otherwise; who said it."""
        if any(item.name == name for item in self.items):
            return "earlier"
        if name in self.env:
            value, reason, source = self.env[name], "you set it", "user"
        elif name in self.profile.environment:
            value, reason, source = self.profile.environment[name], _OF_PROFILE, "profile"
        self.items.append(Setting(name=name, value=value, reason=reason, source=source))
        return source

    def put_per_node(self, name: str, values: dict[str, str], reason: str) -> None:
        """Add a variable whose value may differ between nodes."""
        common = max(sorted(set(values.values())), key=list(values.values()).count)
        differing = {node: value for node, value in values.items() if value != common}
        if differing:
            reason += "; names differ between nodes"
        if self.put(name, common, reason) == "chosen":
            for node, value in differing.items():
                self.per_node.setdefault(node, {})[name] = value


def _socket_settings(settings: _Settings, socket: SocketChoice) -> None:
    for_nccl = {node.node: _exactly(socket.names[node.node], node) for node in settings.nodes}
    settings.put_per_node("NCCL_SOCKET_IFNAME", for_nccl, socket.reason)
    names, reason = socket.names, f"{socket.reason} (gloo takes a full name)"
    wanted = settings.env.get("NCCL_SOCKET_IFNAME")
    if wanted is not None and "GLOO_SOCKET_IFNAME" not in settings.env:
        matched = {node.node: _first_match(node, wanted) for node in settings.nodes}
        if all(matched.values()):
            names, reason = matched, f"the same as your NCCL_SOCKET_IFNAME={wanted}"
    settings.put_per_node("GLOO_SOCKET_IFNAME", names, reason)
    if socket.is_ipv6:
        settings.put("NCCL_SOCKET_FAMILY", "AF_INET6", "the chosen interface has IPv6 alone")


def _exactly(name: str, node: NodeInventory) -> str:
    """Return `name`, or `=name` where NCCL's prefix matching would take a second interface."""
    alike = [item.name for item in node.interfaces if item.name.startswith(name)]
    return name if alike == [name] else f"={name}"


def _first_match(node: NodeInventory, wanted: str) -> str:
    names = NameList.parse(wanted)
    found = (item.name for item in node.interfaces if names.matches(item.name) and item.is_ready)
    return next(found, "")


def _hca_settings(settings: _Settings, hcas: HcaChoice) -> None:
    nodes, profile = settings.nodes, settings.profile
    if not hcas.serves_all:
        settings.put("NCCL_IB_DISABLE", "1", f"{_why_no_ib(hcas)}: the last resort, {TCP_COST}")
        return
    values = {node: "=" + ",".join(map(port_label, ports)) for node, ports in hcas.ports.items()}
    count = min(len(ports) for ports in hcas.ports.values())
    rate = f" at {hcas.rate_gbps:g} Gbit/s" if hcas.rate_gbps else ""
    left_out = "".join(f"; {name} left out ({why})" for name, why in hcas.left_out)
    reason = f"{count} {hcas.link_layer} port{'s'[: count > 1]}{rate}, ACTIVE on every node"
    settings.put_per_node("NCCL_IB_HCA", values, f"{reason}{left_out}")
    if profile.gdr_level:
        settings.put("NCCL_NET_GDR_LEVEL", profile.gdr_level, _OF_PROFILE)
    elif _is_behind_host_bridge(nodes):
        settings.put("NCCL_NET_GDR_LEVEL", "PHB", "GPUs and HCAs share a host bridge, no switch")
    has_rails = profile.rail_optimized
    if is_rail_fabric(nodes, hcas) if has_rails is None else has_rails:
        settings.put("NCCL_CROSS_NIC", "0", "each HCA reaches only its own rail on the other nodes")


def _why_no_ib(hcas: HcaChoice) -> str:
    if not hcas.without:
        return "no two nodes have a usable port in common"
    by_reason: dict[str, list[str]] = {}
    for node, why, _ in hcas.without:
        by_reason.setdefault(why, []).append(node)
    return "; ".join(f"{folded(names)}: {why}" for why, names in by_reason.items())


def _is_behind_host_bridge(nodes: list[NodeInventory]) -> bool:
    """Whether GPUDirect goes over the host bridge on all nodes.

    NCCL's own limit is PXB on most platforms (user guide): a nearer HCA needs nothing.
    """
    distances = {gpu.distance for node in nodes for gpu in node.gpus}
    return distances == {"PHB"} and all(node.verbs.gpudirect for node in nodes)


def _transport(hcas: HcaChoice, env: Mapping[str, str]) -> str:
    if not hcas.serves_all or has_switched_off_ib(env):
        return "TCP"
    return "RoCE" if hcas.link_layer == "Ethernet" else "InfiniBand"


def _socket_findings(socket: SocketChoice | None) -> Iterator[Finding]:
    if socket is None:
        text = "no interface that is up connects all nodes"
        fix = "bring the same interface up on every node, in one subnet"
        yield Finding(ALL_NODES, "interfaces", "interface", "fail", text, fix)
    elif socket.is_routed:
        part = ",".join(sorted(set(socket.names.values())))
        text = "the nodes have no subnet in common; the chosen interface is routed"
        yield Finding(ALL_NODES, part, "interface", "note", text)


def _hca_findings(nodes: list[NodeInventory], hcas: HcaChoice) -> Iterator[Finding]:
    if hcas.serves_all or not any(node.hcas for node in nodes):
        return
    fixes = dict.fromkeys(fix for _, _, fix in hcas.without)
    fix = "leave the named nodes out" if hcas.are_meant else "; ".join(fixes)
    text = f"InfiniBand cannot serve all nodes ({_why_no_ib(hcas)}): TCP, {TCP_COST}"
    if len(hcas.without) == len(nodes) > 1:
        text += "; no node can be told apart, all are alike"
    yield Finding(ALL_NODES, "NCCL_IB_DISABLE", "transport", "warn", text, fix)
