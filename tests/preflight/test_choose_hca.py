"""Which ports carry the training: ties, majorities, and what is said of the nodes without any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpc_train.preflight.choose.choose import choose
from hpc_train.preflight.choose.choose_hca import HcaChoice, choose_hcas
from hpc_train.preflight.choose.site_profile import SiteProfile

from .made_sysfs import MadeHca, MadePort, bond_hca, ib_node, roce_node, tcp_node


def share(hcas: HcaChoice) -> float:
    """Of the fabric's ports that are used on the node with the fewest; 1.0 without a fabric."""
    used = min((len(ports) for ports in hcas.ports.values()), default=0)
    return used / len(hcas.compute) if hcas.compute else 1.0


def values(choice) -> dict[str, str]:
    return {item.name: item.value for item in choice.environment}


def test_nothing_is_lost_where_there_is_nothing_to_lose():
    assert share(HcaChoice()) == 1.0
    assert not HcaChoice().serves_all


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (1, "(node1: no HCA): TCP"),
        (4, "(node[1-4]: no HCA): TCP"),
        (6, "(node[1-6]: no HCA): TCP"),
    ],
)
def test_the_nodes_without_a_port_are_named_together(seen, lacking, words):
    made = [tcp_node(number) for number in range(1, lacking + 1)]
    (finding,) = choose(seen(*made, ib_node(9)), {}).findings
    assert words in finding.evidence
    assert finding.fix


@pytest.mark.parametrize(("dead", "named"), [(1, "node1"), (4, "node4,"), (5, "and 1 more")])
def test_at_most_four_nodes_with_a_dead_port_are_named(seen, dead, named):
    made = [ib_node(number) for number in range(1, 12)]
    for index in range(dead):
        made[index] = made[index].port("mlx5_1", state="DOWN")
    (reason,) = [item.reason for item in choose(seen(*made), {}).environment if "HCA" in item.name]
    assert named in reason
    assert "so left out on all" in reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"library": False}, "libibverbs.so.1 does not load"),
        ({"verbs": False}, "no /dev/infiniband/uverbs* that opens"),
    ],
)
def test_why_a_node_has_no_usable_port_is_said(seen, change, why):
    hcas = choose_hcas(seen(ib_node(1), replace(ib_node(2), **change)), SiteProfile())
    assert [item[:2] for item in hcas.without] == [("node2", why)]
    dead = ib_node(2).port("mlx5_0", state="INIT").port("mlx5_1", state="DOWN")
    hcas = choose_hcas(seen(replace(ib_node(1), name="a"), replace(dead, name="b")), SiteProfile())
    assert [item[:2] for item in hcas.without] == [("b", "no ACTIVE InfiniBand port")]


def test_half_of_the_nodes_with_live_infiniband_make_it_the_link_layer(seen):
    half = seen(ib_node(1), roce_node(2))
    assert choose_hcas(half, SiteProfile()).link_layer == "InfiniBand"
    third = seen(*[replace(roce_node(n), name=f"r{n}") for n in (1, 2)], ib_node(3))
    assert choose_hcas(third, SiteProfile()).link_layer == "Ethernet"
    profile = SiteProfile(link_layer="Ethernet")
    assert choose_hcas(half, profile).link_layer == "Ethernet"


def test_ports_that_are_slow_and_many_beat_one_that_is_fast(seen):
    storage = MadeHca("mlx5_9", (MadePort(rate=800),), pci="pci0000:90/0000:90:01.0/0000:91:00.0")
    four = [ib_node(number, 4).plus(storage) for number in (1, 2)]
    hcas = choose_hcas(seen(*four), SiteProfile())
    assert (hcas.rate_gbps, len(hcas.compute)) == (400.0, 4)
    assert hcas.left_out == (("mlx5_9:1", "800 Gbit/s, the others have 400"),)
    one = [replace(ib_node(number, 1), name=f"n{number}").plus(storage) for number in (1, 2)]
    assert choose_hcas(seen(*one), SiteProfile()).rate_gbps == 800.0
    two = [replace(ib_node(number, 2), name=f"m{number}").plus(storage) for number in (1, 2)]
    assert choose_hcas(seen(*two), SiteProfile()).rate_gbps == 800.0, "a tie goes to the faster"


def test_the_rate_of_a_dead_port_says_nothing(seen):
    made = [ib_node(number) for number in (1, 2, 3)]
    for index in (0, 1):
        made[index] = made[index].port("mlx5_0", state="DOWN", rate=10)
    hcas = choose_hcas(seen(*made), SiteProfile())
    assert hcas.rate_gbps == 400.0
    assert all("Gbit/s" not in why for _, why in hcas.left_out)


@pytest.mark.parametrize(
    ("with_hcas", "without", "meant"), [(1, 1, True), (1, 2, False), (2, 2, True), (0, 2, False)]
)
def test_infiniband_is_meant_where_half_of_the_nodes_can_use_it(seen, with_hcas, without, meant):
    made = [ib_node(number + 1) for number in range(with_hcas)]
    made += [tcp_node(with_hcas + number + 1) for number in range(without)]
    assert choose_hcas(seen(*made), SiteProfile()).are_meant is meant


@pytest.mark.parametrize(("alive", "meant"), [(1, False), (2, True), (3, True)])
def test_a_port_is_meant_to_work_where_half_of_the_nodes_have_it_alive(seen, alive, meant):
    made = [ib_node(number) for number in (1, 2, 3, 4)]
    for index in range(4 - alive):
        made[index] = made[index].port("mlx5_1", state="DOWN")
    hcas = choose_hcas(seen(*made), SiteProfile())
    assert (("mlx5_1", 1) in hcas.compute) is meant
    assert share(hcas) == (0.5 if meant else 1.0)


def test_names_in_common_are_kept_while_they_are_at_least_half_of_the_ports(seen):
    def other(number: int, same: int, hcas: int = 4):
        node = ib_node(number, hcas)
        renamed = [replace(hca, name=f"ibp{i}") for i, hca in enumerate(node.hcas)]
        return replace(node, hcas=(*node.hcas[:same], *renamed[same:]))

    half = choose_hcas(seen(ib_node(1, 4), other(2, 2)), SiteProfile())
    assert half.ports["node2"] == (("mlx5_0", 1), ("mlx5_1", 1))
    made = [replace(ib_node(1, 4), name="a"), replace(other(2, 1), name="b")]
    fewer = choose_hcas(seen(*made), SiteProfile())
    assert [len(ports) for ports in fewer.ports.values()] == [4, 4]
    assert fewer.ports["b"][1] == ("ibp1", 1)
    assert fewer.without == ()


def test_bonds_carry_nothing_where_any_other_port_is_alive(seen):
    made = [ib_node(number).plus(*bond_hca(number)) for number in (1, 2)]
    assert ("mlx5_bond_0:1", "a bond: storage or management, not for training") in (
        choose_hcas(seen(*made), SiteProfile()).left_out
    )


def test_rails_need_two_hcas_and_a_network_of_their_own_each(seen):
    single = [roce_node(number, 1, rails=True) for number in (1, 2)]
    assert "NCCL_CROSS_NIC" not in values(choose(seen(*single), {}))
    two = [replace(roce_node(number, 2, rails=True), name=f"r{number}") for number in (1, 2)]
    assert values(choose(seen(*two), {}))["NCCL_CROSS_NIC"] == "0"
    crossed = [two[0], replace(two[1], name="x", hcas=two[1].hcas[::-1])]
    crossed[1] = replace(crossed[1], interfaces=roce_node(2, 2).interfaces)
    assert "NCCL_CROSS_NIC" not in values(choose(seen(replace(two[0], name="y"), crossed[1]), {}))


def test_the_site_says_whether_it_has_rails(seen):
    flat = seen(*[roce_node(number) for number in (1, 2)])
    assert values(choose(flat, {}, profile=SiteProfile(rail_optimized=True)))["NCCL_CROSS_NIC"]
    railed = seen(*[replace(roce_node(n, rails=True), name=f"r{n}") for n in (1, 2)])
    off = choose(railed, {}, profile=SiteProfile(rail_optimized=False))
    assert "NCCL_CROSS_NIC" not in values(off)


@pytest.mark.parametrize(
    ("env", "transport"),
    [
        ({}, "InfiniBand"),
        ({"NCCL_IB_DISABLE": "0"}, "InfiniBand"),
        ({"NCCL_IB_DISABLE": ""}, "InfiniBand"),
        ({"NCCL_IB_DISABLE": "1"}, "TCP"),
        ({"NCCL_NET": "Socket"}, "TCP"),
        ({"NCCL_NET": "IB"}, "InfiniBand"),
    ],
)
def test_the_transport_is_what_the_users_variables_leave(seen, env, transport):
    assert choose(seen(ib_node(1), ib_node(2)), env).transport == transport


def test_one_node_alone_with_dead_ports_is_not_said_to_be_like_all(seen):
    dead = ib_node(1).port("mlx5_0", state="INIT").port("mlx5_1", state="INIT")
    (finding,) = choose(seen(dead), {}).findings
    assert "no node can be told apart" not in finding.evidence


def test_the_count_of_ports_is_said_in_numbers_that_agree(seen):
    def reason(*made) -> str:
        (found,) = [
            item.reason for item in choose(seen(*made), {}).environment if "HCA" in item.name
        ]
        return found

    assert reason(ib_node(1, 1), ib_node(2, 1)).startswith("1 InfiniBand port at 400 Gbit/s, A")
    three = [replace(ib_node(number, 3), name=f"t{number}") for number in (1, 2)]
    assert reason(*three).startswith("3 InfiniBand ports at 400 Gbit/s, ACTIVE on every node")


@pytest.mark.parametrize(("nodes", "dead", "left"), [(1, 0, 1.0), (2, 1, 0.5), (1, 1, 1.0)])
def test_of_one_or_two_nodes_a_single_live_port_is_half_or_all(seen, nodes, dead, left):
    made = [ib_node(number) for number in range(1, nodes + 1)]
    for index in range(dead):
        made[index] = made[index].port("mlx5_1", state="DOWN")
    assert share(choose_hcas(seen(*made), SiteProfile())) == left


def test_live_infiniband_is_chosen_over_more_ports_of_ethernet(seen):
    beside = [
        MadeHca(f"roce{i}", (MadePort(link_layer="Ethernet"),), pci=f"pci0000:9{i}/0000:9{i}:00.0")
        for i in (1, 2)
    ]
    mixed = [ib_node(number, 1).plus(*beside) for number in (1, 2)]
    hcas = choose_hcas(seen(*mixed), SiteProfile())
    assert hcas.link_layer == "InfiniBand"
    assert hcas.ports["node1"] == (("mlx5_0", 1),)
    assert ("roce1:1", "link layer Ethernet, the training uses InfiniBand") in hcas.left_out


def test_a_site_that_leaves_out_every_hca_trains_over_tcp_and_says_so(seen):
    profile = SiteProfile(hca_exclude=("mlx5_0", "mlx5_1"))
    choice = choose(seen(ib_node(1), ib_node(2)), {}, profile=profile)
    assert values(choice)["NCCL_IB_DISABLE"] == "1"
    (reason,) = [item.reason for item in choice.environment if item.name == "NCCL_IB_DISABLE"]
    assert reason.startswith("no two nodes have a usable port in common: the last resort")


def test_two_nodes_with_dead_ports_cannot_be_told_apart(seen):
    dead = [ib_node(n).port("mlx5_0", state="INIT").port("mlx5_1", state="INIT") for n in (1, 2)]
    (finding,) = choose(seen(*dead), {}).findings
    assert "no node can be told apart, all are alike" in finding.evidence
    assert finding.fix.startswith("look at the switch")


def test_a_rail_is_known_by_a_single_routable_address(seen):
    made = [roce_node(number, rails=True) for number in (1, 2)]
    one = [
        replace(
            node,
            hcas=tuple(
                replace(hca, ports=(replace(hca.ports[0], gids=hca.ports[0].gids[-1:]),))
                for hca in node.hcas
            ),
        )
        for node in made
    ]
    assert values(choose(seen(*one), {}))["NCCL_CROSS_NIC"] == "0"
