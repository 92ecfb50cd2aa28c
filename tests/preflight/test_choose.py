from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.errors import ConfigError
from hpc_train.preflight.choose.choose import FOR_THE_TEST, choose
from hpc_train.preflight.choose.patterns import NameList
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import Gpu

from .exported import exported
from .made_sysfs import (
    MadeHca,
    MadeInterface,
    MadePort,
    bond_hca,
    docker0,
    ib_node,
    roce_gids,
    roce_node,
    tcp_node,
)
from .test_choose_hca import share


def values(choice) -> dict[str, str]:
    return {item.name: item.value for item in choice.environment}


def three(make=ib_node, **kwargs):
    return [make(number, **kwargs) for number in (1, 2, 3)]


def test_healthy_infiniband_gets_ipoib_and_the_exact_list_of_ports(seen):
    choice = choose(seen(*three()), {})
    assert values(choice) == {
        "NCCL_SOCKET_IFNAME": "ib0",
        "GLOO_SOCKET_IFNAME": "ib0",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    }
    assert choice.transport == "InfiniBand"
    assert choice.addresses == {f"node{n}": f"10.1.0.{n}" for n in (1, 2, 3)}
    assert share(choice.hcas) == 1.0
    assert choice.findings == ()
    assert all(item.reason and "\n" not in item.reason for item in choice.environment)


def test_without_infiniband_only_the_interface_is_chosen(seen):
    choice = choose(seen(*three(tcp_node)), {})
    assert values(choice) == {"NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0"}
    assert choice.transport == "TCP"


def test_docker_veth_virbr_and_cni_are_never_chosen_although_they_come_first(seen):
    extra = (
        docker0(),
        MadeInterface("virbr0", 1, "192.168.122.1/24", marks=("bridge",)),
        MadeInterface("cni0", 1, "10.244.0.1/24", marks=("bridge",)),
        MadeInterface("veth0a1b2c3", 1, "10.250.0.1/24"),
    )
    choice = choose(seen(*[node.plus(*extra) for node in three(tcp_node)]), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"


def test_an_address_that_all_nodes_share_is_no_way_between_them(seen):
    private = MadeInterface("eno9", 1, "192.168.7.1/24", speed=400_000)
    choice = choose(seen(*[node.plus(private) for node in three(tcp_node)]), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"


def test_link_local_addresses_are_no_way_between_nodes(seen):
    nodes = [
        node.plus(MadeInterface("usb0", 1, f"169.254.3.{node.number}/16"))
        for node in three(tcp_node)
    ]
    assert values(choose(seen(*nodes), {}))["GLOO_SOCKET_IFNAME"] == "eth0"


def test_ipoib_down_on_one_node_moves_all_nodes_to_ethernet(seen):
    nodes = three()
    nodes[1] = nodes[1].interface("ib0", state="down", address=None)
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"
    assert values(choice)["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"


def test_nodes_that_name_their_interface_differently_get_values_of_their_own(seen):
    nodes = three(tcp_node)
    nodes[2] = replace(
        nodes[2], interfaces=(nodes[2].interfaces[0], MadeInterface("ens5", 2, "10.0.0.3/24"))
    )
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"
    assert choice.per_node == {
        "node3": {"NCCL_SOCKET_IFNAME": "ens5", "GLOO_SOCKET_IFNAME": "ens5"}
    }
    assert exported(choice, "node3")["GLOO_SOCKET_IFNAME"] == "ens5"
    assert exported(choice, "node1")["GLOO_SOCKET_IFNAME"] == "eth0"
    reasons = {item.name: item.reason for item in choice.environment}
    assert reasons["GLOO_SOCKET_IFNAME"].endswith("; names differ between nodes")


def test_a_name_that_is_the_prefix_of_another_is_written_exactly_for_nccl_alone(seen):
    nodes = [
        node.plus(MadeInterface("eth01", 9, f"10.8.0.{node.number}/24", speed=1000))
        for node in three(tcp_node)
    ]
    chosen = values(choose(seen(*nodes), {}))
    assert chosen["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert chosen["GLOO_SOCKET_IFNAME"] == "eth0"


def test_nodes_in_different_subnets_fall_back_to_a_common_name_and_it_is_said(seen):
    nodes = [node.interface("eth0", address=f"10.{node.number}.0.5/24") for node in three(tcp_node)]
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"
    assert [finding.level for finding in choice.findings] == ["note"]


def test_no_common_interface_at_all_is_a_failure(seen):
    nodes = three(tcp_node)
    nodes[0] = nodes[0].interface("eth0", state="down", address=None)
    choice = choose(seen(*nodes), {})
    assert "NCCL_SOCKET_IFNAME" not in values(choice)
    assert [f.level for f in choice.findings if f.check == "interface"] == ["fail"]


def test_one_node_without_any_network_uses_the_loopback(seen):
    made = tcp_node(1)
    choice = choose(seen(made.interface("eth0", state="down", address=None)), {})
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "lo"


def test_a_port_that_is_dead_on_one_node_is_left_out_on_all(seen):
    nodes = three()
    nodes[1] = nodes[1].port("mlx5_0", state="DOWN", phys="Polling", rate=10)
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert "mlx5_0:1 left out (not usable on node2" in choice.environment[-1].reason
    assert share(choice.hcas) == 0.5


def test_a_port_that_waits_for_the_subnet_manager_is_dead_for_nccl(seen):
    nodes = three()
    nodes[2] = nodes[2].port("mlx5_1", state="INIT")
    assert values(choose(seen(*nodes), {}))["NCCL_IB_HCA"] == "=mlx5_0:1"


def test_bond_and_storage_hcas_are_left_out(seen):
    storage = MadeHca("mlx5_9", (MadePort(rate=100),), pci="pci0000:90/0000:90:01.0/0000:91:00.0")
    nodes = [node.plus(*bond_hca(node.number), storage) for node in three()]
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    reason = next(item.reason for item in choice.environment if item.name == "NCCL_IB_HCA")
    assert "mlx5_bond_0:1 left out (a bond" in reason
    assert "mlx5_9:1 left out (100 Gbit/s, the others have 400)" in reason


def test_one_node_with_an_extra_bond_changes_nothing(seen):
    nodes = three()
    nodes[1] = nodes[1].plus(*bond_hca(2))
    assert values(choose(seen(*nodes), {}))["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"


def test_a_site_whose_only_hcas_are_bonds_trains_over_them(seen):
    nodes = [tcp_node(n).plus(*bond_hca(n)) for n in (1, 2)]
    nodes = [replace(node, library=True, verbs=True) for node in nodes]
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_HCA"] == "=mlx5_bond_0:1"
    assert choice.transport == "RoCE"


def test_one_slow_port_is_no_storage_hca(seen):
    nodes = three()
    nodes[0] = nodes[0].port("mlx5_0", rate=200)
    assert values(choose(seen(*nodes), {}))["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"


def test_the_profile_leaves_out_storage_of_the_same_rate(seen):
    profile = SiteProfile(hca_exclude=("mlx5_1",))
    assert values(choose(seen(*three()), {}, profile=profile))["NCCL_IB_HCA"] == "=mlx5_0:1"


def test_nodes_that_name_their_hcas_differently_get_lists_of_their_own(seen):
    nodes = three()
    other = [replace(hca, name=f"ibp{i}s0") for i, hca in enumerate(nodes[1].hcas)]
    nodes[1] = replace(nodes[1], hcas=tuple(other))
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    assert choice.per_node["node2"]["NCCL_IB_HCA"] == "=ibp0s0:1,ibp1s0:1"


def test_a_node_without_hcas_makes_tcp_the_last_resort_and_says_the_cost(seen):
    nodes = three()
    nodes[2] = nodes[2].without_hcas()
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_DISABLE"] == "1"
    assert "NCCL_IB_HCA" not in values(choice)
    (finding,) = choice.findings
    assert finding.level == "warn"
    assert "node3: no HCA" in finding.evidence
    assert "2 to 5 times" in finding.evidence


def test_when_no_node_has_a_live_port_none_is_told_apart(seen):
    nodes = [node.port("mlx5_0", state="INIT").port("mlx5_1", state="INIT") for node in three()]
    (finding,) = choose(seen(*nodes), {}).findings
    assert finding.node == "*"
    assert "no node can be told apart" in finding.evidence


@pytest.mark.parametrize("broken", [{"verbs": False}, {"library": False}])
def test_hcas_that_no_process_can_reach_do_not_count(seen, broken):
    nodes = three()
    nodes[0] = replace(nodes[0], **broken)
    choice = choose(seen(*nodes), {})
    assert values(choice)["NCCL_IB_DISABLE"] == "1"


def test_roce_leaves_the_gid_index_to_nccl(seen):
    choice = choose(seen(*three(roce_node)), {})
    assert "NCCL_IB_GID_INDEX" not in values(choice)
    assert choice.transport == "RoCE"


def test_infiniband_never_gets_a_gid_index(seen):
    assert "NCCL_IB_GID_INDEX" not in values(choose(seen(*three()), {}))


def test_rails_in_subnets_of_their_own_keep_to_their_rail(seen):
    railed = choose(seen(*three(roce_node, rails=True)), {})
    assert values(railed)["NCCL_CROSS_NIC"] == "0"


def test_one_flat_subnet_is_no_rail_fabric(seen):
    assert "NCCL_CROSS_NIC" not in values(choose(seen(*three(roce_node)), {}))


def test_gpudirect_over_a_host_bridge_is_allowed_where_that_is_the_way(seen):
    nodes = [
        replace(node, gpus=(Gpu(index=0, nearest_hca="mlx5_0", distance="PHB"),))
        for node in seen(*three())
    ]
    assert values(choose(nodes, {}))["NCCL_NET_GDR_LEVEL"] == "PHB"
    nodes = [
        replace(node, gpus=(Gpu(index=0, nearest_hca="mlx5_0", distance="PIX"),)) for node in nodes
    ]
    assert "NCCL_NET_GDR_LEVEL" not in values(choose(nodes, {}))


def test_what_the_user_sets_wins_over_profile_and_choice(seen):
    env = {"NCCL_SOCKET_IFNAME": "eth0"}
    profile = SiteProfile(environment={"NCCL_SOCKET_IFNAME": "ib0", "NCCL_DEBUG": "WARN"})
    choice = choose(seen(*three()), env, profile=profile)
    assert values(choice)["NCCL_SOCKET_IFNAME"] == "eth0"
    assert values(choice)["GLOO_SOCKET_IFNAME"] == "eth0"
    assert values(choice)["NCCL_DEBUG"] == "WARN"
    assert {item.name: item.source for item in choice.environment}["NCCL_DEBUG"] == "profile"
    assert choice.findings == ()


@pytest.mark.parametrize(
    ("env", "level", "words"),
    [
        ({"NCCL_SOCKET_IFNAME": "eno1"}, "fail", "matches no interface"),
        ({"NCCL_SOCKET_IFNAME": "^docker0"}, "warn", "lets lo (loopback) in"),
        ({"NCCL_SOCKET_IFNAME": "ib0,^eth0"}, "fail", "once, at the start"),
        ({"GLOO_SOCKET_IFNAME": "^docker0,lo"}, "fail", "crashes it"),
        ({"GLOO_SOCKET_IFNAME": "ib7"}, "fail", "no such interface"),
        ({"NCCL_IB_HCA": "hfi1"}, "fail", "matches no ACTIVE port"),
        ({"NCCL_IB_HCA": "mlx5"}, "warn", "takes mlx5_bond_0:1: a bond"),
        ({"NCCL_IB_HCA": "=mlx5_0,=mlx5_1"}, "fail", "once, at the start"),
        ({"NCCL_IB_DISABLE": "1"}, "warn", "switched off by you"),
        ({"NCCL_IB_DISABLE": "1", "NCCL_NET": "IB"}, "fail", "no network is left"),
        ({"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "=mlx5_0"}, "warn", "has no effect"),
        ({"NCCL_IB_GID_INDEX": "3"}, "note", "RoCE alone"),
        ({"NCCL_SHM_DISABLE": "1"}, "note", "slow"),
        ({"MASTER_ADDR": "127.0.0.1"}, "fail", "another machine on each node"),
    ],
)
def test_a_variable_that_cannot_do_what_it_says_is_told(seen, env, level, words):
    nodes = [node.plus(*bond_hca(node.number)) for node in three()]
    if env.get("NCCL_IB_HCA") == "mlx5":
        nodes = [node.port("mlx5_bond_0", link_layer="InfiniBand") for node in nodes]
    found = [f for f in choose(seen(*nodes), env).findings if f.check == "user_env"]
    assert (level, True) in [(f.level, words in f.evidence) for f in found]
    assert all(f.fix for f in found)


def test_a_list_that_mixes_link_layers_cannot_connect(seen):
    nodes = [node.plus(*bond_hca(node.number)) for node in three()]
    found = choose(seen(*nodes), {"NCCL_IB_HCA": "mlx5"}).findings
    assert {f.node for f in found if "mixes Ethernet and InfiniBand" in f.evidence} == {"*"}


def test_a_prefix_that_also_takes_mlx5_10_is_told(seen):
    nodes = [node.plus(replace(node.hcas[0], name="mlx5_10")) for node in three()]
    found = choose(seen(*nodes), {"NCCL_IB_HCA": "mlx5_1"}).findings
    assert any("also takes mlx5_10" in f.evidence for f in found)


def test_a_wrong_gid_index_on_roce_is_a_failure(seen):
    found = choose(seen(*three(roce_node)), {"NCCL_IB_GID_INDEX": "0"}).findings
    assert {(f.level, f.node) for f in found} == {("fail", "*")}
    assert "it is at 3" in found[0].evidence


@pytest.mark.parametrize(
    ("text", "name", "port", "hit"),
    [
        ("mlx5_1", "mlx5_10", 1, True),
        ("=mlx5_1", "mlx5_10", 1, False),
        ("=mlx5_1:2", "mlx5_1", 1, False),
        ("^mlx5_1", "mlx5_10", 1, False),
        ("^=mlx5_1", "mlx5_10", 1, True),
        ("ib,eth", "eth3", 0, True),
    ],
)
def test_lists_are_read_as_nccl_reads_them(text, name, port, hit):
    assert NameList.parse(text).matches(name, port) is hit


def test_the_test_alone_asks_nccl_to_mind_a_missing_hca(seen):
    nodes = seen(*three())
    choice = choose(nodes, {})
    assert FOR_THE_TEST["NCCL_IGNORE_NET_MISMATCH"] == "0"
    assert "NCCL_IGNORE_NET_MISMATCH" not in values(choice)
    assert "NCCL_DEBUG" not in values(choose(nodes, {}))


def test_an_unknown_key_in_a_profile_is_refused_by_name():
    with pytest.raises(ConfigError, match="socket_ifname"):
        SiteProfile.from_mapping({"socket_ifname": "ib0"})
    with pytest.raises(ConfigError, match="gdr_level"):
        SiteProfile.from_mapping({"gdr_level": "PIG"})


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_choice_does_not_depend_on_the_order_of_nodes(tmp_path_factory, seed):
    rng = random.Random(seed)
    made = []
    for number in range(1, 5):
        node = rng.choice([ib_node, roce_node, tcp_node])(number)
        if node.hcas and rng.random() < 0.5:
            node = node.port(rng.choice(node.hcas).name, state=rng.choice(["DOWN", "INIT"]))
        if rng.random() < 0.3:
            node = node.plus(docker0(), *bond_hca(number))
        made.append(node)
    folder = tmp_path_factory.mktemp("nodes")
    nodes = [
        collect_inventory(m.write(folder / m.name), {}, lambda: 1.0, node=m.name) for m in made
    ]
    shuffled = list(nodes)
    rng.shuffle(shuffled)
    a, b = choose(nodes, {}), choose(shuffled, {})
    assert values(a).keys() == values(b).keys()
    for node in nodes:
        mine, other = exported(a, node.node), exported(b, node.node)
        assert mine == other
        for name in ("GLOO_SOCKET_IFNAME",):
            if name in mine:
                interface = node.interface(mine[name])
                assert interface is not None
                assert interface.kind in ("ethernet", "ipoib", "bond")
        if "NCCL_IB_HCA" in mine:
            for item in mine["NCCL_IB_HCA"][1:].split(","):
                name, port = item.split(":")
                assert node.hca(name).ports[int(port) - 1].is_active


def test_roce_gids_of_two_ports_at_different_indices_give_no_single_value(seen):
    made = roce_node(1)
    gids = roce_gids("10.2.1.1", "rdma1", v2_index=9)
    choice = choose(seen(made.port("mlx5_1", gids=gids)), {})
    assert "NCCL_IB_GID_INDEX" not in values(choice)
