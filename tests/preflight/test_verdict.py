from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.checks.pairs import PairResult
from hpc_train.preflight.choose.choose import Choice, Setting
from hpc_train.preflight.collective import CollectiveResult, GpuRate, PairTransport
from hpc_train.preflight.options import Policy, PreflightOptions
from hpc_train.preflight.verdict import (
    Skipped,
    Verdict,
    decide,
    measured,
    with_broken,
    with_collectives,
    with_skipped,
    with_unreachable,
)

from .exported import exported


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
    answer = decide(said, CHOICE, nodes=["node1", "node2"], policy=Policy())
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
    assert exported(answer, "node2") == {"NCCL_SOCKET_IFNAME": "ib1"}
    assert exported(answer, "node1") == {"NCCL_SOCKET_IFNAME": "ib0"}


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


def test_what_follows_from_an_unreachable_node_is_not_told_beside_it(tmp_path):
    asked = PreflightOptions(nodes=("node1", "node2"), folder=str(tmp_path))
    said = [finding("fail", "node2", "rendezvous"), finding("fail", "node1", "rendezvous")]
    before = decide(said, CHOICE, nodes=["node1", "node2"], policy=Policy())
    after_it = with_unreachable(before, {"node2": "Communication connection failure"}, asked)
    checks = [(item.node, item.check) for item in after_it.findings]
    assert checks == [("node2", "launch"), ("node1", "rendezvous")]


def test_a_preflight_that_broke_at_once_says_that_nothing_was_checked():
    broke = with_broken(verdict(), "probe", "srun: error", Policy())
    assert not with_broken(verdict(), "gemm", "no time", Policy()).checked_nothing
    assert broke.checked_nothing
    assert broke.summary[0] == "go-degraded: NOTHING WAS CHECKED on 2 nodes"


def test_what_made_it_a_no_is_the_worst_that_there_is():
    assert [item.level for item in verdict("warn", "fail", "ok").against] == ["fail"]
    assert [item.level for item in verdict("unknown", "warn").against] == ["warn"]
    assert verdict("ok", "note").against == []


def test_the_summary_says_the_answer_and_then_the_worst_first():
    pairs = [PairResult(a="node1", b="node2", round=1), PairResult(a="node2", b="node1", round=2)]
    said = [
        finding("ok"),
        finding("note"),
        finding("unknown"),
        replace(finding("warn", "*"), fix=""),
        finding("fail", "node2"),
    ]
    skipped = [Skipped("gemm", "no GPU"), Skipped("nvlink", "no GPU"), Skipped("lid", "RoCE")]
    answer = decide(
        said,
        CHOICE,
        nodes=["node1", "node2"],
        policy=Policy(),
        pairs=pairs,
        skipped=skipped,
        seconds=1.23456,
    )
    assert answer.summary == (
        "no-go: 2 nodes over InfiniBand, 2 rounds of pairs, 1.2 s",
        "fail: node2 mlx5_0:1 rate: 200 Gbit/s -> cable",
        "warn: all nodes mlx5_0:1 rate: 200 Gbit/s",
        "unknown: node1 mlx5_0:1 rate: 200 Gbit/s -> cable",
        "note: node1 mlx5_0:1 rate: 200 Gbit/s -> cable",
        "skipped: gemm, nvlink: no GPU",
        "skipped: lid: RoCE",
    )
    assert [item.level for item in answer.findings] == ["fail", "warn", "unknown", "note", "ok"]
    assert answer.seconds == 1.235
    assert (answer.bad_nodes, answer.degraded_nodes) == (("node2",), ())


def test_one_node_and_one_round_are_not_many():
    pairs = [PairResult(a="a", b="b", round=1)]
    one = decide([], Choice(), nodes=["node1"], policy=Policy(), pairs=pairs)
    assert one.summary == ("go: 1 node over TCP, 1 round of pairs, 0.0 s",)
    none = Verdict(verdict="go")
    assert none.summary == ("go: 0 nodes over TCP, 0 rounds of pairs, 0.0 s",)


def test_a_node_without_a_result_of_the_collective_is_unknown_and_named():
    skipped = [Skipped("collective", "not run yet"), Skipped("gemm", "no GPU")]
    before = verdict("ok", skipped=skipped)
    policy = Policy(on_unknown="no-go")
    nodes = ["node1", "node2"]
    answer = with_collectives(before, [rank("node1")], policy, nodes=nodes)
    assert answer.verdict == "no-go"
    assert [(f.node, f.level) for f in answer.findings if f.level != "ok"] == [("node2", "unknown")]
    assert [item.part for item in answer.skipped] == ["gemm"], "it has run now"
    nothing = with_collectives(before, [], Policy(), nodes=nodes)
    assert nothing.verdict == "go"
    assert [item.part for item in nothing.skipped] == ["collective", "gemm"]


def test_a_part_that_broke_is_told_and_the_policy_decides():
    broke = with_broken(verdict("ok"), "collective", "srun was killed", Policy())
    assert broke.verdict == "go"
    assert broke.findings[0].evidence == "the collective broke: srun was killed"
    assert broke.findings[0].part == "collective"
    assert Skipped("collective", "srun was killed") in broke.skipped
    strict = with_broken(verdict("ok"), "collective", "x", Policy(on_broken="no-go"))
    assert strict.verdict == "no-go"
    late = with_skipped(broke, "gemm", "no time")
    assert late.skipped[-1] == Skipped("gemm", "no time")


def test_a_broken_check_is_no_broken_preflight():
    answer = verdict("unknown", policy=Policy(on_broken="no-go"))
    assert answer.verdict == "go"


def test_what_was_left_out_stays_out_when_the_collective_is_added():
    said = [finding("fail", "node3"), finding("ok")]
    before = decide(said, CHOICE, nodes=["node1", "node2"], policy=Policy())
    results = [rank("node1"), rank("node2")]
    after_it = with_collectives(before, results, Policy(), nodes=["node1", "node2"])
    assert (after_it.verdict, after_it.bad_nodes) == ("go", ("node3",))
    failed = [rank("node1"), rank("node2", ok=False, error="x")]
    assert with_collectives(before, failed, Policy()).verdict == "no-go"


def pair(a: str, b: str, gbps: float | None = None, us: float | None = None, **told: object):
    return PairResult(a=a, b=b, gbps_ab=gbps, latency_us=us, **told)


@pytest.mark.parametrize(
    ("pairs", "lines"),
    [
        ([], []),
        (
            [pair("n1", "n2", 23.44, 31.4)],
            ["bandwidth: 23.4 Gbit/s; slowest n1 - n2 23.4 Gbit/s",
             "round trip: 31 us; longest n1 - n2 31 us"],
        ),
        (
            [pair("n1", "n2", 23, 30), pair("n1", "n3", 1.25, 900), pair("n2", "n3", 22, 31)],
            ["bandwidth: 22 Gbit/s; slowest n1 - n3 1.25 Gbit/s",
             "round trip: 31 us; longest n1 - n3 900 us"],
        ),
        ([pair("n1", "n2", 9.0, gbps_ba=4.0)], ["bandwidth: 4 Gbit/s; slowest n1 - n2 4 Gbit/s"]),
        ([pair("n1", "n2", us=5.0)], ["round trip: 5 us; longest n1 - n2 5 us"]),
        ([pair("n1", "n2", 9.0, 5.0, error="timed out")], []),
    ],
)  # fmt: skip
def test_what_the_pairs_measured_is_told_with_the_slowest_of_them(pairs, lines):
    assert measured(pairs) == lines
