"""From the inventories of all nodes to one set of NCCL and gloo variables, each with its reason.

What the user sets wins; it is checked in `user_env`, and told where it cannot work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Thresholds
from hpc_train.preflight.choose.choose_hca import (
    HcaChoice,
    choose_hcas,
    is_rail_fabric,
)
from hpc_train.preflight.choose.choose_socket import SocketChoice, choose_socket
from hpc_train.preflight.choose.patterns import NameList
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.choose.user_env import check_user_env

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hpc_train.preflight.inventory.inventory import NodeInventory

__all__ = ["TCP_COST", "Choice", "Setting", "choose", "for_the_test"]

# What users reported for InfiniBand against TCP: 2.51 -> 5.72 s a step; 25 -> 5 GB/s.
TCP_COST = "a step takes 2 to 5 times as long as over InfiniBand"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One environment variable.

    Attributes:
        name: `NCCL_IB_HCA`.
        value: For every node that has no value of its own in `Choice.per_node`.
        reason: One line.
        source: `chosen`, `profile` or `user`.
    """

    name: str
    value: str
    reason: str
    source: str = "chosen"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to export on all nodes.

    Attributes:
        environment: For every rank.
        per_node: node -> {name: value} where a node's value differs from `environment`.
        preflight_environment: Further variables for the preflight's own collective alone.
        addresses: Numeric address of each node on the chosen interface.
        interfaces: Name of that interface by node.
        transport: `InfiniBand`, `RoCE` or `TCP`: what a ring over several nodes should use.
        share: Share of the fabric's ports in use, 1.0 where nothing is lost.
        findings: What has to be said about the choice and about the user's own variables.
    """

    environment: tuple[Setting, ...] = ()
    per_node: dict[str, dict[str, str]] = field(default_factory=dict)
    preflight_environment: tuple[Setting, ...] = ()
    addresses: dict[str, str] = field(default_factory=dict)
    interfaces: dict[str, str] = field(default_factory=dict)
    transport: str = "TCP"
    share: float = 1.0
    findings: tuple[Finding, ...] = ()

    def for_node(self, node: str) -> dict[str, str]:
        """Return the variables of one node."""
        return {item.name: item.value for item in self.environment} | self.per_node.get(node, {})


def choose(
    nodes: list[NodeInventory],
    env: Mapping[str, str],
    profile: SiteProfile | None = None,
    thresholds: Thresholds | None = None,
) -> Choice:
    """Return one choice for all nodes.

    Args:
        nodes: Inventories of every node of the job, at least one.
        env: The user's environment; only NCCL_*, GLOO_* and MASTER_ADDR are read.
        profile: The site's, where there is one.
        thresholds: `memlock_mib` says which nodes can use their HCAs.
    """
    profile = profile or SiteProfile()
    socket = choose_socket(nodes, profile)
    hcas = choose_hcas(nodes, profile, (thresholds or Thresholds()).memlock_mib)
    builder = _Builder(nodes=nodes, env=env, profile=profile)
    _socket_settings(builder, socket)
    _hca_settings(builder, hcas)
    for name, value in profile.environment.items():
        builder.put(name, value, "the site's profile sets it", source="profile")
    return Choice(
        environment=tuple(builder.settings),
        per_node=builder.per_node,
        preflight_environment=tuple(for_the_test()),
        addresses=socket.addresses if socket else {},
        interfaces=socket.names if socket else {},
        transport=_transport(hcas, env),
        share=hcas.share,
        findings=(
            *_socket_findings(socket),
            *_hca_findings(nodes, hcas),
            *check_user_env(nodes, env, hcas),
        ),
    )


@dataclass
class _Builder:
    nodes: list[NodeInventory]
    env: Mapping[str, str]
    profile: SiteProfile
    settings: list[Setting] = field(default_factory=list)
    per_node: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, name: str, value: str, reason: str, *, source: str = "chosen") -> None:
        """Add a variable, unless the user or the site's profile says otherwise."""
        if any(item.name == name for item in self.settings):
            return
        if name in self.env:
            value, reason, source = self.env[name], "you set it", "user"
        elif name in self.profile.environment:
            value = self.profile.environment[name]
            reason, source = "the site's profile sets it", "profile"
        self.settings.append(Setting(name=name, value=value, reason=reason, source=source))

    def put_per_node(self, name: str, values: dict[str, str], reason: str) -> None:
        """Add a variable whose value may differ between nodes."""
        distinct = sorted(set(values.values()))
        common = max(distinct, key=list(values.values()).count)
        if len(distinct) == 1:
            self.put(name, common, reason)
            return
        self.put(name, common, f"{reason}; names differ between nodes")
        if self.settings[-1].source != "chosen":
            return
        for node, value in values.items():
            if value != common:
                self.per_node.setdefault(node, {})[name] = value


def _socket_settings(builder: _Builder, socket: SocketChoice | None) -> None:
    if socket is None:
        return
    for_nccl = {node.node: _exactly(socket.names[node.node], node) for node in builder.nodes}
    builder.put_per_node("NCCL_SOCKET_IFNAME", for_nccl, socket.reason)
    names, reason = socket.names, f"{socket.reason} (gloo takes a full name)"
    wanted = builder.env.get("NCCL_SOCKET_IFNAME")
    if wanted is not None and "GLOO_SOCKET_IFNAME" not in builder.env:
        matched = {node.node: _first_match(node, wanted) for node in builder.nodes}
        if all(matched.values()):
            names = {node: name or "" for node, name in matched.items()}
            reason = f"the same as your NCCL_SOCKET_IFNAME={wanted}"
    builder.put_per_node("GLOO_SOCKET_IFNAME", names, reason)
    if socket.is_ipv6:
        builder.put("NCCL_SOCKET_FAMILY", "AF_INET6", "the chosen interface has IPv6 alone")


def _exactly(name: str, node: NodeInventory) -> str:
    """Return `name`, or `=name` where NCCL's prefix matching would take a second interface."""
    alike = [item.name for item in node.interfaces if item.name.startswith(name)]
    return name if alike == [name] else f"={name}"


def _first_match(node: NodeInventory, wanted: str) -> str | None:
    names = NameList.parse(wanted)
    up = [item for item in node.interfaces if item.state in ("up", "unknown")]
    found = [item.name for item in up if names.matches(item.name) and (item.ipv4 or item.ipv6)]
    return found[0] if found else None


def _hca_settings(builder: _Builder, hcas: HcaChoice) -> None:
    if not any(node.hcas for node in builder.nodes):
        return
    if not hcas.serves_all:
        builder.put("NCCL_IB_DISABLE", "1", f"{_why_no_ib(hcas)}: the last resort, {TCP_COST}")
        return
    values = {
        node: "=" + ",".join(f"{hca}:{port}" for hca, port in ports)
        for node, ports in hcas.ports.items()
    }
    count = min(len(ports) for ports in hcas.ports.values())
    rate = f" at {hcas.rate_gbps:g} Gbit/s" if hcas.rate_gbps else ""
    left_out = "".join(f"; {name} left out ({why})" for name, why in hcas.left_out)
    reason = f"{count} {hcas.link_layer} port{'s'[: count > 1]}{rate}, ACTIVE on every node"
    builder.put_per_node("NCCL_IB_HCA", values, f"{reason}{left_out}")
    _gdr_setting(builder)
    if builder.profile.rail_optimized or (
        builder.profile.rail_optimized is None and is_rail_fabric(builder.nodes, hcas)
    ):
        builder.put("NCCL_CROSS_NIC", "0", "each HCA reaches only its own rail on the other nodes")


def _why_no_ib(hcas: HcaChoice) -> str:
    if not hcas.without:
        return "no two nodes have a usable port in common"
    by_reason: dict[str, list[str]] = {}
    for node, why, _ in hcas.without:
        by_reason.setdefault(why, []).append(node)
    return "; ".join(f"{folded(names)}: {why}" for why, names in by_reason.items())


def _gdr_setting(builder: _Builder) -> None:
    """Allow GPUDirect over the host bridge where that is the way from GPU to HCA on all nodes.

    NCCL's own limit is PXB on most platforms (user guide): a nearer HCA needs nothing.
    """
    if builder.profile.gdr_level:
        builder.put("NCCL_NET_GDR_LEVEL", builder.profile.gdr_level, "the site's profile sets it")
        return
    gpus = [gpu for node in builder.nodes for gpu in node.gpus]
    has_gdr = all(node.verbs.gpudirect for node in builder.nodes)
    if gpus and has_gdr and {gpu.distance for gpu in gpus} == {"PHB"}:
        builder.put("NCCL_NET_GDR_LEVEL", "PHB", "GPUs and HCAs share a host bridge, no switch")


def for_the_test() -> Iterator[Setting]:
    """Yield what the preflight's own collective gets beside the choice, and no training does."""
    yield Setting(name="NCCL_DEBUG", value="INFO", reason="the log tells what was really used")
    yield Setting(name="NCCL_DEBUG_SUBSYS", value="INIT,NET,GRAPH", reason="rings and transports")
    yield Setting(
        name="NCCL_IGNORE_NET_MISMATCH",
        value="0",
        reason="NCCL 2.30 ignores a missing HCA by default, and then spins",
    )


def _transport(hcas: HcaChoice, env: Mapping[str, str]) -> str:
    if not hcas.serves_all or env.get("NCCL_IB_DISABLE", "0") not in ("", "0"):
        return "TCP"
    if env.get("NCCL_NET", "").lower() == "socket":
        return "TCP"
    return "RoCE" if hcas.link_layer == "Ethernet" else "InfiniBand"


def _socket_findings(socket: SocketChoice | None) -> Iterator[Finding]:
    if socket is None:
        yield Finding(
            node=ALL_NODES,
            part="interfaces",
            check="interface",
            level="fail",
            evidence="no interface that is up connects all nodes",
            fix="bring the same interface up on every node, in one subnet",
        )
    elif socket.is_routed:
        yield Finding(
            node=ALL_NODES,
            part=",".join(sorted(set(socket.names.values()))),
            check="interface",
            level="note",
            evidence="the nodes have no subnet in common; the chosen interface is routed",
        )


def _hca_findings(nodes: list[NodeInventory], hcas: HcaChoice) -> Iterator[Finding]:
    if hcas.serves_all or not any(node.hcas for node in nodes):
        return
    fixes = dict.fromkeys(fix for _, _, fix in hcas.without)
    alike = len(hcas.without) == len(nodes) > 1
    yield Finding(
        node=ALL_NODES,
        part="NCCL_IB_DISABLE",
        check="transport",
        level="warn",
        evidence=f"InfiniBand cannot serve all nodes ({_why_no_ib(hcas)}): TCP, {TCP_COST}"
        + ("; no node can be told apart, all are alike" if alike else ""),
        fix="leave the named nodes out" if hcas.are_meant else "; ".join(fixes),
    )
