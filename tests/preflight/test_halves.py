"""Checks at their edges: exactly half of the nodes, two alike, and nothing to compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train.preflight.checks.check_context import Context
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.checks.node_checks import run_checks

from .made_sysfs import MadeInterface, ib_node, tcp_node


def found(nodes, check) -> list[Finding]:
    """What one check says beyond ok."""
    results = run_checks(Context.of(nodes, {}))
    return [f for f in results.findings if f.check == check and f.level != "ok"]


def blamed(nodes, check) -> list[tuple[str, str, str]]:
    return [(f.node, f.part, f.level) for f in found(nodes, check)]


def ports(first: int, last: int, hcas: int) -> list:
    return [ib_node(number, hcas) for number in range(first, last + 1)]


def test_a_port_that_half_of_the_nodes_have_is_the_others_to_miss(seen):
    half = seen(*ports(1, 2, 3), *ports(3, 4, 2))
    assert blamed(half, "hca_set") == [
        ("node3", "mlx5_2:1", "warn"),
        ("node4", "mlx5_2:1", "warn"),
    ]


def test_a_port_that_fewer_than_half_have_is_only_noted_where_it_is(seen):
    one = seen(*ports(1, 1, 3), *ports(2, 4, 2))
    assert blamed(one, "hca_set") == [("node1", "mlx5_2:1", "note")]


def test_of_two_nodes_the_one_with_fewer_ports_is_named(seen):
    assert blamed(seen(ib_node(1, 2), ib_node(2, 1)), "hca_set") == [("node2", "mlx5_1:1", "warn")]


def extra(number: int, up: bool):
    made = tcp_node(number)
    address = f"10.7.0.{number}/24" if up else None
    state = "up" if up else "down"
    return made.plus(MadeInterface("eth7", 7, address, state=state))


@pytest.mark.parametrize(
    ("count", "up", "named"),
    [
        (2, 1, ["node2"]),  # all but one
        (3, 2, ["node3"]),
        (3, 1, []),
        (4, 3, ["node4"]),
        (4, 2, []),  # exactly half: the site's layout
        (6, 3, []),
        (5, 3, ["node4", "node5"]),  # more than half
        (4, 1, []),
    ],
)
def test_an_interface_is_missed_where_more_than_half_or_all_but_one_have_it(seen, count, up, named):
    nodes = seen(*[extra(number, number <= up) for number in range(1, count + 1)])
    said = found(nodes, "interface")
    assert [f.node for f in said] == named
    assert {f.part for f in said} <= {"eth7"}
    assert all(f"is down; up on {up} of {count} nodes" in f.evidence for f in said)


@pytest.mark.parametrize(("check", "field"), [("mtu", "mtu"), ("speed", "speed_mbps")])
def test_numbers_that_no_interface_tells_are_not_compared(seen, check, field):
    def without(node):
        return replace(
            node, interfaces=tuple(replace(item, **{field: None}) for item in node.interfaces)
        )

    nodes = seen(*[tcp_node(number) for number in (1, 2, 3)])
    results = run_checks(Context.of([without(node) for node in nodes], {}))
    assert check in dict(results.skipped)
    assert check not in {f.check for f in results.findings}
    one = run_checks(Context.of([nodes[0], *map(without, nodes[1:])], {}))
    assert [f.level for f in one.findings if f.check == check] == ["ok"]


@pytest.mark.parametrize("check", ["mtu", "speed"])
def test_of_two_that_differ_the_smaller_is_named(seen, check):
    small = {"mtu": 1400} if check == "mtu" else {"speed": 1_000}
    nodes = seen(tcp_node(1).interface("eth0", **small), tcp_node(2))
    assert blamed(nodes, check) == [("node1", "eth0", "warn")]
    (finding,) = found(nodes[::-1], check)
    assert finding.node == "node1"
    assert "1 of 2 nodes have" in finding.evidence


def test_rates_that_no_port_tells_are_not_compared(seen):
    nodes = seen(*ports(1, 3, 2))
    dumb = [
        replace(
            node,
            hcas=tuple(
                replace(hca, ports=tuple(replace(port, rate_gbps=None) for port in hca.ports))
                for hca in node.hcas
            ),
        )
        for node in nodes
    ]
    assert found(dumb, "rate") == []


def test_of_two_rates_the_lower_port_is_named_whichever_comes_first(seen):
    slow = ib_node(1).port("mlx5_0", rate=200)
    nodes = seen(slow, ib_node(2))
    for order in (nodes, nodes[::-1]):
        assert blamed(order, "rate") == [("node1", "mlx5_0:1", "warn")]
