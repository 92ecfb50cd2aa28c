from __future__ import annotations

import json

import pytest

from hpc_train.network.choose import Choice, Setting
from hpc_train.network.collective import CollectiveResult, GpuRate, PairTransport
from hpc_train.network.findings import Finding
from hpc_train.network.options import PreflightOptions
from hpc_train.network.pairs import PairResult
from hpc_train.network.verdict import (
    Policy,
    Skipped,
    Verdict,
    decide,
    with_collectives,
    with_unreachable,
)


def finding(level, node="node1", check="rate"):
    return Finding(
        node=node, part="mlx5_0:1", check=check, level=level, evidence="200 Gbit/s", fix="cable"
    )


CHOICE = Choice(
    environment=(Setting(name="NCCL_SOCKET_IFNAME", value="ib0", reason="IPoIB"),),
    per_node={"node2": {"NCCL_SOCKET_IFNAME": "ib1"}},
    transport="InfiniBand",
)


def verdict(*levels, policy=None, **kwargs):
    return decide(
        [finding(level) for level in levels],
        CHOICE,
        nodes=["node1", "node2"],
        policy=policy or Policy(),
        **kwargs,
    )


@pytest.mark.parametrize(
    ("levels", "answer"),
    [
        ((), "go"),
        (("ok", "note"), "go"),
        (("unknown",), "go"),
        (("ok", "warn"), "go-degraded"),
        (("warn", "fail", "ok"), "no-go"),
    ],
)
def test_the_worst_finding_decides(levels, answer):
    assert verdict(*levels).verdict == answer


def test_the_policy_refuses_what_is_degraded_unknown_or_broken():
    assert verdict("warn", policy=Policy(on_degraded="no-go")).verdict == "no-go"
    assert verdict("unknown", policy=Policy(on_unknown="no-go")).verdict == "no-go"
    broken = [finding("unknown", check="preflight")]
    for policy, answer in ((Policy(), "go"), (Policy(on_broken="no-go"), "no-go")):
        assert decide(broken, CHOICE, nodes=["node1"], policy=policy).verdict == answer


def test_a_node_that_is_left_out_no_longer_counts_and_is_still_told():
    said = [finding("fail", "node3"), finding("ok")]
    answer = decide(said, CHOICE, nodes=["node1", "node2"], policy=Policy(), excluded=["node3"])
    assert answer.verdict == "go"
    assert answer.bad_nodes == ("node3",)


def test_what_did_not_run_is_said():
    answer = verdict(skipped=[Skipped("collective", "no GPU")])
    assert "skipped: collective: no GPU" in answer.summary


def test_the_document_keeps_its_contract_and_comes_back():
    pair = PairResult(a="node1", b="node2", gbps_ab=20.0)
    answer = verdict("warn", "ok", pairs=[pair], skipped=[Skipped("gemm", "no GPU")])
    document = json.loads(json.dumps(answer.to_json()))
    assert document["schema_version"] == 1
    assert document["verdict"] == "go-degraded"
    assert set(document["findings"][0]) == {"node", "part", "check", "level", "evidence", "fix"}
    assert {"name", "value", "reason"} <= set(document["environment"][0])
    assert document["pairs"][0]["a"] == "node1"
    assert Verdict.from_json(document) == answer
    assert answer.for_node("node2") == {"NCCL_SOCKET_IFNAME": "ib1"}
    assert answer.for_node("node1") == {"NCCL_SOCKET_IFNAME": "ib0"}


@pytest.mark.parametrize("garbage", [None, [], {"verdict": "maybe"}, {"verdict": 3}])
def test_a_document_that_is_no_verdict_is_a_value_error(garbage):
    with pytest.raises(ValueError, match="Verdict"):
        Verdict.from_json(garbage)


def rank(node, **kwargs):
    return CollectiveResult(**({"node": node, "backend": "nccl", "ok": True} | kwargs))


def after(*results):
    return with_collectives(verdict("ok"), list(results), Policy())


def test_an_all_reduce_that_fails_on_one_node_names_it():
    answer = after(rank("node1"), rank("node2", ok=False, error="deadline of 10 s passed"))
    assert answer.verdict == "no-go"
    assert answer.bad_nodes == ("node2",)


def test_an_all_reduce_that_fails_everywhere_names_nobody():
    failed = {"ok": False, "error": "deadline of 10 s passed"}
    answer = after(rank("node1", **failed), rank("node2", **failed))
    assert answer.verdict == "no-go"
    assert answer.bad_nodes == ()
    assert "nothing can be told apart" in answer.findings[0].evidence


def test_infiniband_that_was_found_and_not_used_is_degraded():
    tcp = PairTransport(a="node1", b="node2", transport="NET/Socket")
    answer = after(rank("node1", transports=(tcp,)), rank("node2"))
    assert answer.verdict == "go-degraded"
    used = PairTransport(a="node1", b="node2", transport="NET/IBext_v8", gdr=True)
    assert after(rank("node1", transports=(used,)), rank("node2")).verdict == "go"


def test_a_throttled_gpu_is_told_by_the_median():
    rates = tuple(GpuRate(gpu=i, tflops=600.0) for i in range(4))
    slow = (*rates[:3], GpuRate(gpu=3, tflops=300.0))
    answer = after(rank("node1", gemm=rates), rank("node2", gemm=slow))
    (warn,) = [f for f in answer.findings if f.level == "warn"]
    assert (warn.node, warn.part, warn.check) == ("node2", "gpu 3", "gemm")


def test_an_open_ring_is_a_failure():
    assert after(rank("node1", rings_complete=False), rank("node2")).verdict == "no-go"


def test_a_finding_that_several_nodes_have_is_one_line_and_stays_one_each_in_json():
    names = [f"rack{rack}n{number:02}" for rack in (1, 2) for number in (1, 2)]
    said = [finding("warn", name) for name in names] + [finding("warn", "gpu7", check="lid")]
    told = decide(said, CHOICE, nodes=names, policy=Policy())
    lines = [line for line in told.summary if line.startswith("warn")]
    assert [line.split(" mlx5")[0] for line in lines] == [
        "warn: rack[1-2]n[01-02]", "warn: gpu7",
    ]  # fmt: skip
    assert [item["node"] for item in told.to_json()["findings"]] == [*names, "gpu7"]
    assert told.degraded_nodes == (*names, "gpu7")


@pytest.mark.parametrize(("wanted", "answer"), [(None, "no-go"), (2, "go"), (3, "no-go")])
def test_a_node_that_srun_cannot_reach_is_a_no_unless_a_spare_is_there(tmp_path, wanted, answer):
    asked = PreflightOptions(nodes=("node1", "node2", "node3"), folder=str(tmp_path), wanted=wanted)
    seen = with_unreachable(verdict("ok"), {"node3": "Communication connection failure"}, asked)
    assert (seen.verdict, seen.bad_nodes) == (answer, ("node3",))
    assert "fail: node3 slurmd launch: " in seen.summary[1]
