"""Of two networks that every node has, which one carries the sockets: key by key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train.preflight.choose.choose import choose
from hpc_train.preflight.choose.choose_socket import (
    SocketChoice,
    choose_socket,
    is_one_host,
    usable_interfaces,
)
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.inventory.inventory import Clock, Interface, NodeInventory

A_HOST = NodeInventory(node="", hostname="", clock=Clock(unix_s=0.0))


def interface(name: str, index: int, address: str, **fields: object) -> Interface:
    family = "ipv6" if ":" in address else "ipv4"
    known = {"kind": "ethernet", "state": "up", "speed_mbps": 10_000, family: (address,), **fields}
    return Interface(name=name, index=index, **known)  # type: ignore[arg-type]


def nodes(*rows: list[Interface]) -> list[NodeInventory]:
    """A node for each row."""
    names = (f"node{number}" for number in range(1, len(rows) + 1))
    return [
        replace(A_HOST, node=name, hostname=name, boot_id=name, interfaces=tuple(row))
        for name, row in zip(names, rows, strict=True)
    ]


def two(make: object, other: object) -> list[NodeInventory]:
    """Three nodes with both networks, made for a node's number."""
    return nodes(*([make(n), other(n)] for n in (1, 2, 3)))  # type: ignore[operator]


def chosen(found: list[NodeInventory], **profile: object) -> SocketChoice:
    choice = choose_socket(found, SiteProfile(**profile))  # type: ignore[arg-type]
    assert choice is not None
    backwards = [replace(node, interfaces=node.interfaces[::-1]) for node in found]
    again = choose_socket(backwards, SiteProfile(**profile))  # type: ignore[arg-type]
    assert again is not None
    assert again.names == choice.names, "the order in which the kernel lists them does not matter"
    return choice


def slow(n: int) -> Interface:
    return interface("slow0", 2, f"10.0.0.{n}/24", speed_mbps=1_000)


def fast(n: int) -> Interface:
    return interface("fast0", 3, f"10.1.0.{n}/24", speed_mbps=100_000)


def test_the_faster_network_is_chosen_and_the_other_is_named() -> None:
    choice = chosen(two(slow, fast))
    assert set(choice.names.values()) == {"fast0"}
    assert choice.addresses == {f"node{n}": f"10.1.0.{n}" for n in (1, 2, 3)}
    assert choice.reason == (
        "ethernet at 100 Gbit/s: every node has it in 10.1.0.0/24, preferred to slow0"
    )
    assert (choice.is_routed, choice.is_ipv6) == (False, False)


def test_a_network_is_as_fast_as_its_slowest_node() -> None:
    found = two(lambda n: interface("even0", 5, f"10.0.0.{n}/24", speed_mbps=25_000), fast)
    assert set(chosen(found).names.values()) == {"fast0"}
    fell_back = replace(found[2].interfaces[1], speed_mbps=10_000)
    found[2] = replace(found[2], interfaces=(found[2].interfaces[0], fell_back))
    choice = chosen(found)
    assert set(choice.names.values()) == {"even0"}
    assert "at 25 Gbit/s" in choice.reason


def test_a_network_of_unknown_speed_comes_after_any_that_tells_it() -> None:
    unknown = two(slow, lambda n: replace(fast(n), speed_mbps=None))
    assert set(chosen(unknown).names.values()) == {"slow0"}


def test_ipv4_is_preferred_to_a_faster_ipv6() -> None:
    six = two(slow, lambda n: interface("six0", 1, f"2001:db8::{n}/64", speed_mbps=100_000))
    assert set(chosen(six).names.values()) == {"slow0"}
    only = nodes(*([interface("six0", 1, f"2001:db8::{n}/64")] for n in (1, 2)))
    choice = chosen(only)
    assert choice.is_ipv6
    assert choice.addresses == {"node1": "2001:db8::1", "node2": "2001:db8::2"}
    told = {item.name: item.value for item in choose(only, {}).environment}
    assert told["NCCL_SOCKET_FAMILY"] == "AF_INET6"
    both = {item.name for item in choose(six, {}).environment}
    assert "NCCL_SOCKET_FAMILY" not in both


def test_ipoib_is_preferred_where_every_node_has_it_as_such() -> None:
    def ib(n: int) -> Interface:
        return interface("ib0", 9, f"10.2.0.{n}/24", kind="ipoib", speed_mbps=56_000)

    assert set(chosen(two(fast, ib)).names.values()) == {"ib0"}
    mixed = two(fast, ib)
    gateway = replace(mixed[1].interfaces[1], kind="ethernet")
    mixed[1] = replace(mixed[1], interfaces=(mixed[1].interfaces[0], gateway))
    assert set(chosen(mixed).names.values()) == {"fast0"}


def test_the_sites_own_interface_wins_over_every_speed() -> None:
    choice = chosen(two(slow, fast), socket_interface="slow0")
    assert set(choice.names.values()) == {"slow0"}


def test_of_two_alike_the_lower_index_wins_by_its_highest_on_any_node() -> None:
    def other(n: int) -> Interface:
        return replace(fast(n), name="also0", index=4, ipv4=(f"10.3.0.{n}/24",))

    assert set(chosen(two(fast, other)).names.values()) == {"fast0"}
    found = two(fast, other)
    late = replace(found[0].interfaces[0], index=7)
    found[0] = replace(found[0], interfaces=(late, found[0].interfaces[1]))
    assert set(chosen(found).names.values()) == {"also0"}


def test_a_network_that_one_node_lacks_is_not_chosen() -> None:
    found = two(slow, fast)
    found[1] = replace(found[1], interfaces=found[1].interfaces[:1])
    assert set(chosen(found).names.values()) == {"slow0"}


@pytest.mark.parametrize(
    ("fields", "usable"),
    [
        ({}, True),
        ({"state": "unknown"}, True),
        ({"state": "down"}, False),
        ({"kind": "bridge"}, False),
        ({"kind": "loopback"}, False),
        ({"kind": "ipoib"}, True),
        ({"ipv4": ()}, False),
        ({"ipv4": ("169.254.1.1/16",)}, False),
    ],
)
def test_an_interface_counts_where_it_is_up_with_an_address_that_leaves_the_node(
    fields: dict[str, object], usable: bool
) -> None:
    (node,) = nodes([replace(slow(1), **fields)])  # type: ignore[arg-type]
    assert bool(usable_interfaces(node)) is usable


def test_routed_networks_are_ranked_by_the_same_keys() -> None:
    def routed(item: Interface, n: int, net: int) -> Interface:
        return replace(item, ipv4=(f"10.{net}.{n}.5/24",))

    found = nodes(*([routed(slow(n), n, 1), routed(fast(n), n, 2)] for n in (1, 2, 3)))
    choice = chosen(found)
    assert choice.is_routed
    assert set(choice.names.values()) == {"fast0"}
    assert choice.addresses == {f"node{n}": f"10.2.{n}.5" for n in (1, 2, 3)}
    assert set(chosen(found, socket_interface="slow0").names.values()) == {"slow0"}


def test_nodes_without_any_network_in_common_have_no_choice() -> None:
    apart = nodes([slow(1)], [fast(2)])
    assert choose_socket(apart, SiteProfile()) is None
    lo = interface("lo", 1, "127.0.0.1/8", kind="loopback", speed_mbps=None)
    assert choose_socket(nodes([lo], [lo]), SiteProfile()) is None


def test_one_host_goes_over_its_loopback_where_nothing_else_is_up() -> None:
    lo = interface("lo", 1, "127.0.0.2/8", kind="loopback", speed_mbps=None)
    (node,) = nodes([lo])
    twice = [node, replace(node, node="node1/1")]
    assert is_one_host(twice)
    choice = chosen(twice)
    assert choice.addresses == {"node1": "127.0.0.2", "node1/1": "127.0.0.2"}
    assert (choice.is_routed, choice.is_ipv6) == (False, False)
    bare = replace(node, interfaces=(replace(lo, ipv4=()),))
    assert chosen([bare]).addresses == {"node1": "127.0.0.1"}
    assert choose_socket([replace(node, interfaces=())], SiteProfile()) is None


def test_two_ranks_of_one_host_share_its_address_and_two_hosts_do_not() -> None:
    (node,) = nodes([slow(1)])
    other = replace(node, node="node2")
    assert set(chosen([node, other]).names.values()) == {"slow0"}
    assert not is_one_host([node, replace(other, boot_id="b")])
    assert not is_one_host([node, replace(other, hostname="b")])
    assert choose_socket([node, replace(other, boot_id="b")], SiteProfile()) is None


def test_a_network_of_the_same_interface_is_no_other_one() -> None:
    """IPv4 and IPv6 of one interface: it was preferred to itself."""
    both = nodes(
        *([interface("eth0", 2, f"10.0.0.{n}/24", ipv6=(f"fd00::{n}/64",))] for n in (1, 2))
    )
    assert "preferred" not in chosen(both).reason
