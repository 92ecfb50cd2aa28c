from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hpc_train.preflight.checks.check_context import Context
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.checks.node_checks import CHECKS, run_checks
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import Gpu, Limits

from .made_sysfs import bond_hca, docker0, ib_node, roce_node, tcp_node

MIB = 1024 * 1024


def several(make=ib_node, count=4, **kwargs):
    return [make(number, **kwargs) for number in range(1, count + 1)]


def said(nodes, **kwargs):
    """Everything that is not plainly ok: (node, check, level)."""
    context = Context.of(nodes, {}, **kwargs)
    findings = (*run_checks(context).findings, *context.choice.findings)
    return [(f.node, f.check, f.level) for f in findings if f.level not in ("ok", "note")]


@pytest.mark.parametrize(
    "made",
    [
        several(),
        several(tcp_node),
        several(roce_node),
        several(roce_node, rails=True),
        [roce_node(1, v2_index=3), roce_node(2, v2_index=7), roce_node(3, v2_index=5)],
        [node.plus(*bond_hca(node.number), docker0()) for node in several()],
        [ib_node(1), ib_node(2).plus(*bond_hca(2)), ib_node(3)],
        [ib_node(1)],
        [tcp_node(1)],
        # a second port that is unplugged on every node is the site's layout
        [node.port("mlx5_1", state="DOWN", phys="Polling") for node in several()],
        [ib_node(1).port("mlx5_1", state="DOWN", phys="Disabled")],
    ],
)
def test_healthy_nodes_raise_no_alarm(seen, made):
    assert said(seen(*made)) == []


FAULTS = {
    "port down": (lambda n: n.port("mlx5_1", state="DOWN", phys="Polling"), "port_state", "warn"),
    "port INIT": (lambda n: n.port("mlx5_0", state="INIT"), "port_state", "warn"),
    "both ports down": (
        lambda n: n.port("mlx5_0", state="DOWN", phys="Polling").port(
            "mlx5_1", state="DOWN", phys="Disabled"
        ),
        "port_state",
        "fail",
    ),
    "half rate": (lambda n: n.port("mlx5_0", rate=200), "rate", "warn"),
    "a tenth of the rate": (lambda n: n.port("mlx5_0", rate=40), "rate", "fail"),
    "no HCAs": (lambda n: n.without_hcas(), "hca_set", "fail"),
    "one HCA gone": (lambda n: replace(n, hcas=n.hcas[:1]), "hca_set", "warn"),
    "RoCE among InfiniBand": (
        lambda n: n.port("mlx5_0", link_layer="Ethernet"),
        "link_layer",
        "fail",
    ),
    "no LID": (lambda n: n.port("mlx5_0", lid=0), "lid", "fail"),
    "no uverbs": (lambda n: replace(n, verbs=False), "verbs", "fail"),
    "no libibverbs": (lambda n: replace(n, library=False), "verbs", "fail"),
    "low memlock": (lambda n: replace(n, memlock="65536"), "memlock", "fail"),
    "IPoIB down": (lambda n: n.interface("ib0", state="down", address=None), "interface", "warn"),
    "IPoIB gone": (lambda n: replace(n, interfaces=n.interfaces[:2]), "interface", "warn"),
    "no network": (
        lambda n: n.interface("ib0", state="down", address=None).interface(
            "eth0", state="down", address=None
        ),
        "interface",
        "fail",
    ),
    "small MTU": (lambda n: n.interface("ib0", mtu=2044), "mtu", "warn"),
    "slow interface": (lambda n: n.interface("ib0", speed=100_000), "speed", "warn"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_faulty_node_is_named_and_no_other(seen, name, seed):
    fault, check, level = FAULTS[name]
    made = several(count=random.Random(seed).choice([3, 4, 8]))
    bad = random.Random(f"{name}{seed}").randrange(len(made))
    made[bad] = fault(made[bad])
    found = said(seen(*made))
    assert (f"node{bad + 1}", check, level) in found
    assert {node for node, _, _ in found} <= {f"node{bad + 1}", "*"}


def test_of_two_nodes_the_one_with_the_dead_port_is_named(seen):
    made = several(count=2)
    made[1] = made[1].port("mlx5_0", state="DOWN", phys="Polling")
    assert said(seen(*made)) == [("node2", "port_state", "warn")]


def test_when_every_port_is_dead_no_node_is_named(seen):
    made = [n.port("mlx5_0", state="INIT").port("mlx5_1", state="INIT") for n in several()]
    assert said(seen(*made)) == [("*", "transport", "warn")]


def test_verbs_missing_everywhere_name_nobody(seen):
    made = [replace(n, verbs=False) for n in several()]
    assert {node for node, _, _ in said(seen(*made))} == {"*"}


def test_a_roce_port_without_a_routable_v2_gid_fails(seen):
    made = several(roce_node)
    v1 = tuple((g[0], "IB/RoCE v1", g[2]) for g in made[2].hcas[0].ports[0].gids if g)
    made[2] = made[2].port("mlx5_0", gids=v1)
    assert ("node3", "gids", "fail") in said(seen(*made))


def test_a_small_dev_shm_is_named(seen):
    nodes = seen(*several())
    small = Limits(memlock_bytes=-1, shm_total_bytes=64 * MIB)
    nodes[1] = replace(nodes[1], limits=small)
    assert said(nodes) == [("node2", "shm", "warn")]
    gpus = (Gpu(index=0), Gpu(index=1))
    nodes[1] = replace(nodes[1], gpus=gpus, nvml="ok")
    assert ("node2", "shm", "fail") in said(nodes)


def test_thresholds_can_be_set(seen):
    nodes = seen(*[replace(n, memlock=str(64 * MIB)) for n in several()])
    assert said(nodes) == [("*", "transport", "warn")]
    assert said(nodes, thresholds=Thresholds(memlock_mib=64)) == []


def test_gloo_does_not_care_about_infiniband(seen):
    made = several()
    made[0] = replace(made[0].port("mlx5_0", state="DOWN"), memlock="65536")
    assert said(seen(*made), is_nccl=False) == []


def test_what_cannot_be_read_is_unknown_and_no_pass(seen, tmp_path):
    made = several()
    root = made[1].write(tmp_path / "other")
    (root / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("")
    nodes = seen(*made)
    nodes[1] = collect_inventory(root, {}, lambda: 1.0, node="node2")
    found = said(nodes)
    assert ("node2", "readable", "unknown") in found
    assert ("node2", "port_state", "unknown") in found
    context = Context.of(nodes, {})
    values = {item.name: item.value for item in context.choice.environment}
    assert values["NCCL_IB_HCA"] == "=mlx5_1:1"


H100 = {"model": "NVIDIA H100", "nvlinks_up": 18, "nvlinks_down": 0, "recovery": "none"}
GPU_FAULTS = {
    "recovery": ({"recovery": "reset"}, "gpu_health", "fail"),
    "lost": ({"recovery": "lost"}, "gpu_health", "fail"),
    "remap failed": ({"remap_failed": True}, "gpu_health", "fail"),
    "remap pending": ({"remap_pending": True}, "gpu_health", "warn"),
    "ecc": ({"ecc_uncorrected": 3}, "gpu_health", "warn"),
    "busy": ({"used_mib": 70_000, "processes": (4711,)}, "gpu_busy", "fail"),
    "nvlink": ({"nvlinks_up": 17, "nvlinks_down": 1}, "nvlink", "fail"),
    "model": ({"model": "NVIDIA A100"}, "gpu_model", "warn"),
}


def with_gpus(nodes, **changes):
    gpus = tuple(Gpu(index=i, **(H100 | changes)) for i in range(4))
    return [replace(n, gpus=gpus, gpus_expected=4, nvml="ok") for n in nodes]


@pytest.mark.parametrize("name", GPU_FAULTS)
def test_one_faulty_gpu_is_named(seen, name):
    changes, check, level = GPU_FAULTS[name]
    nodes = with_gpus(seen(*several()))
    gpus = list(nodes[2].gpus)
    gpus[1] = replace(gpus[1], **changes)
    nodes[2] = replace(nodes[2], gpus=tuple(gpus))
    assert said(nodes) == [("node3", check, level)]


def test_healthy_gpus_raise_no_alarm_with_or_without_nvlink(seen):
    nodes = seen(*several())
    assert said(with_gpus(nodes)) == []
    pcie = with_gpus(nodes, nvlinks_up=None, nvlinks_down=None, recovery=None)
    assert said(pcie) == []


def test_fewer_gpus_than_slurm_gave_is_a_failure_and_no_nvml_is_unknown(seen):
    nodes = with_gpus(seen(*several()))
    nodes[0] = replace(nodes[0], gpus=nodes[0].gpus[:3])
    assert said(nodes) == [("node1", "gpu_count", "fail")]
    nodes[0] = replace(nodes[0], gpus=(), nvml="absent")
    assert ("node1", "gpu_count", "unknown") in said(nodes)


def test_a_check_that_breaks_is_unknown_and_stops_no_other(seen, monkeypatch):
    def broken(context):
        raise KeyError("oops")
        yield

    monkeypatch.setitem(CHECKS, "rate", broken)
    results = run_checks(Context.of(seen(*several()), {}))
    (finding,) = [f for f in results.findings if f.check == "rate"]
    assert finding.level == "unknown"
    assert "KeyError" in finding.evidence
    assert {f.check for f in results.findings} | dict(results.skipped).keys() == CHECKS.keys()


def test_every_check_either_says_something_or_why_it_did_not_run(seen):
    results = run_checks(Context.of(seen(tcp_node(1)), {}))
    ran = {f.check for f in results.findings}
    skipped = dict(results.skipped)
    assert ran.isdisjoint(skipped)
    assert ran | skipped.keys() == CHECKS.keys()
    assert skipped["port_state"] == "no HCA on any node"


@pytest.mark.slow
def test_every_fault_tells_its_fix(seen):
    for name, (fault, _, _) in FAULTS.items():
        made = several()
        made[1] = replace(fault(made[1]), name=f"bad-{name.replace(' ', '-')}")
        made[0] = replace(made[0], name=f"n0-{name}")
        made[2] = replace(made[2], name=f"n2-{name}")
        made[3] = replace(made[3], name=f"n3-{name}")
        context = Context.of(seen(*made), {})
        for finding in run_checks(context).findings:
            if finding.level in ("warn", "fail"):
                assert finding.fix, finding


LACKS = {
    "no uverbs": lambda n: replace(n, verbs=False),
    "8 MiB of memlock": lambda n: replace(n, memlock=str(8 * MIB)),
    "ports INIT": lambda n: n.port("mlx5_0", state="INIT").port("mlx5_1", state="INIT"),
}


@pytest.mark.parametrize(
    ("count", "lacking"), [(1, 1), (2, 2), (3, 2), (3, 3), (4, 3), (4, 4), (5, 3), (5, 5)]
)
@pytest.mark.parametrize("lack", LACKS)
def test_what_most_nodes_lack_names_nobody_and_is_told_once(seen, lack, count, lacking):
    made = [LACKS[lack](n) if n.number <= lacking else n for n in several(count=count)]
    # What is wrong with one HCA besides does not matter: it is not used.
    made[0] = made[0].port("mlx5_1", state="DOWN", phys="Polling")
    assert said(seen(*made)) == [("*", "transport", "warn")]


def test_every_node_lacking_something_else_names_nobody_too(seen):
    made = [lack(node) for lack, node in zip(LACKS.values(), several(count=3), strict=True)]
    assert said(seen(*made)) == [("*", "transport", "warn")]


@pytest.mark.parametrize("setting", [{"NCCL_IB_DISABLE": "1"}, {"NCCL_NET": "Socket"}])
def test_who_chose_tcp_is_not_refused_for_an_hca(seen, setting):
    made = several()
    made[1] = replace(made[1].port("mlx5_0", state="DOWN"), memlock="65536")
    context = Context.of(seen(*made), setting)
    assert {f.level for f in run_checks(context).findings} <= {"ok", "note"}


@pytest.mark.parametrize("sizes", [(64, 64, 64), (64, 32, 16), (64, 64)])
def test_a_small_dev_shm_on_every_node_is_the_sites(seen, sizes):
    nodes = [
        replace(node, limits=Limits(memlock_bytes=-1, shm_total_bytes=size * MIB))
        for node, size in zip(seen(*several(count=len(sizes))), sizes, strict=True)
    ]
    assert said(nodes) == [("*", "shm", "warn")]
