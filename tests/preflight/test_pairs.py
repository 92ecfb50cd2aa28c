from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.codec import decode, encode
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.checks.pairs import MAX_ROUNDS, PairResult, conclude, judge, plan_round

LIMITS = Thresholds()


def world(count, fault_of, seed=0, noise=0.2, usual=None):
    """Play all rounds; `fault_of(node)` is None or what the node's tests show, `usual` the rest."""
    nodes = [f"n{i}" for i in range(count)]
    rng = random.Random(f"noise{seed}")
    results: list[PairResult] = []
    rounds = 0
    while pairs := plan_round(nodes, results, LIMITS, seed):
        rounds += 1
        busy = [name for pair in pairs for name in pair]
        assert len(busy) == len(set(busy)), "pairs of one round are disjoint"
        for a, b in pairs:
            values = {
                "gbps_ab": 20 * rng.uniform(1 - noise, 1 + noise),
                "gbps_ba": 20 * rng.uniform(1 - noise, 1 + noise),
                "latency_us": 30 * rng.uniform(0.5, 2),
                "retransmit_share": 0.0,
                "frame_bytes": 1500,
                "frame_ok": True,
                **(usual or {}),
            }
            for node in (a, b):
                values |= fault_of(node) or {}
            results.append(PairResult(a=a, b=b, round=rounds, **values))
    assert rounds <= MAX_ROUNDS
    return conclude(nodes, results, LIMITS), rounds


FAULTS = {
    "slow": {"gbps_ab": 0.01, "gbps_ba": 0.01},
    "slow one way": {"gbps_ba": 0.01},
    "lossy": {"retransmit_share": 0.05, "retransmits": 500},
    "dropping": {"lost_share": 0.05, "lost": 20},
    "small frames only": {"frame_ok": False},
    "silent": {"error": "no answer in 3 s"},
    "late": {"latency_us": 40_000.0},
}


@pytest.mark.parametrize("count", [2, 3, 4, 8, 33])
@pytest.mark.parametrize("everywhere", [False, True])
def test_who_was_slow_while_other_work_had_the_cpus_is_not_named(count: int, everywhere: bool):
    busy = {"gbps_ab": 0.7, "gbps_ba": 0.7, "ready_share_ab": 0.3, "ready_share_ba": 0.3}
    for seed in range(6):
        there = f"n{random.Random(f'{count}{seed}').randrange(count)}"
        findings, _ = world(count, lambda n: busy if everywhere or n == there else None, seed)  # noqa: B023
        assert {f.level for f in findings} <= {"unknown", "note"}
        if count > 2 and not everywhere:
            (finding,) = [f for f in findings if f.level == "unknown"]
            assert finding.node == there
            assert "measured while other work took the CPUs for 70% of the time" in finding.evidence
            assert finding.fix.startswith("top on that node")


def test_a_slow_link_is_named_although_its_sides_waited_now_and_then():
    """As measured: who waits for a slow link hardly waits for a CPU, also on a busy node."""
    slow = {"gbps_ab": 0.1, "gbps_ba": 0.1, "ready_share_ab": 0.86, "ready_share_ba": 0.9}
    (finding,), _ = world(8, lambda n: slow if n == "n5" else None)
    assert (finding.node, finding.check, finding.level) == ("n5", "bandwidth", "fail")


@pytest.mark.parametrize("way", ["ab", "ba"])
def test_a_link_that_is_slow_one_way_is_named_while_the_other_way_waits_for_the_cpus(way: str):
    """As on a busy node: the healthy way is as fast as the CPUs let it be."""
    busy = {"gbps_ab": 10.0, "gbps_ba": 10.0, "ready_share_ab": 0.34, "ready_share_ba": 0.34}
    slow = busy | {f"gbps_{way}": 0.001, f"ready_share_{way}": 0.97}
    (finding,), _ = world(4, lambda n: slow if n == "n3" else None)
    assert (finding.node, finding.check, finding.level) == ("n3", "bandwidth", "fail")


# As measured on a healthy link of 14 Gbit/s beside 12 busy processes on two CPUs, and beside none.
BESIDE_OTHERS = {"gbps_ab": 31.89, "ready_share_ab": 0.26, "gbps_ba": 32.36, "ready_share_ba": 0.32}
HALF_BESIDE = {"gbps_ab": 7.95, "ready_share_ab": 0.63, "gbps_ba": 6.35, "ready_share_ba": 0.58}
ALONE = {"gbps_ab": 20.96, "ready_share_ab": 0.98, "gbps_ba": 11.69, "ready_share_ba": 0.99}


@pytest.mark.parametrize("count", [3, 4, 8, 33])
@pytest.mark.parametrize("node_has", [HALF_BESIDE, ALONE])
def test_who_was_slower_than_what_busy_cpus_make_of_the_others_is_not_named(
    count: int, node_has: dict[str, float]
):
    for seed in range(6):
        there = f"n{random.Random(f'{count}{seed}').randrange(count)}"
        faults = {there: node_has}
        findings, rounds = world(count, faults.get, seed, usual=BESIDE_OTHERS)
        assert findings == []
        assert rounds <= 3


@pytest.mark.parametrize("count", [3, 4, 8, 33])
def test_a_slow_node_among_busy_ones_is_named(count: int):
    slow = {"gbps_ab": 0.4, "ready_share_ab": 0.9, "gbps_ba": 0.4, "ready_share_ba": 0.9}
    (finding,), _ = world(count, lambda n: slow if n == "n1" else None, usual=BESIDE_OTHERS)
    assert (finding.node, finding.check, finding.level) == ("n1", "bandwidth", "fail")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("count", [3, 4, 5, 8, 33, pytest.param(128, marks=pytest.mark.slow)])
def test_the_one_bad_node_is_named_and_no_other(fault, count):
    for seed in range(12):
        bad = f"n{random.Random(f'{fault}{count}{seed}').randrange(count)}"
        findings, rounds = world(count, lambda n: FAULTS[fault] if n == bad else None, seed)  # noqa: B023
        named = [f.node for f in findings if f.level in ("warn", "fail")]
        assert named == [bad]
        assert rounds <= MAX_ROUNDS


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 33, 128])
def test_healthy_nodes_are_never_named(count):
    for seed in range(10):
        findings, _ = world(count, lambda n: None, seed)
        assert findings == []


def test_healthy_large_jobs_need_one_round():
    assert world(128, lambda n: None)[1] == 1
    assert world(129, lambda n: None)[1] == 2


@settings(max_examples=60, deadline=None)
@given(count=st.integers(6, 64), seed=st.integers(0, 999), data=st.data())
def test_a_minority_of_bad_nodes_is_named_exactly(count, seed, data):
    size = data.draw(st.integers(1, max(1, count // 6)))
    nodes = [f"n{i}" for i in range(count)]
    bad = set(random.Random(seed).sample(nodes, size))
    findings, _ = world(count, lambda n: FAULTS["silent"] if n in bad else None, seed)
    assert {f.node for f in findings if f.level == "fail"} == bad


def test_when_everything_fails_nobody_is_named_and_it_says_why():
    findings, _ = world(8, lambda n: FAULTS["silent"])
    (finding,) = findings
    assert finding.node == "*"
    assert finding.level == "fail"
    assert "nothing can be told apart" in finding.evidence


def test_two_nodes_cannot_be_told_apart_and_the_failure_is_tried_twice():
    findings, rounds = world(2, lambda n: FAULTS["lossy"] if n == "n1" else None)
    (finding,) = findings
    assert finding.node == "*"
    assert finding.part == "n0 <-> n1"
    assert rounds == 2


def test_a_failure_that_does_not_come_again_names_the_way_and_not_a_node():
    nodes = [f"n{i}" for i in range(6)]
    ok = {"gbps_ab": 20.0, "gbps_ba": 20.0}
    results = [
        PairResult(a="n0", b="n1", error="no answer in 3 s"),
        PairResult(a="n2", b="n3", **ok),
        PairResult(a="n4", b="n5", **ok),
        PairResult(a="n0", b="n2", round=2, **ok),
        PairResult(a="n1", b="n3", round=2, **ok),
    ]
    assert plan_round(nodes, results, LIMITS, 0) == []
    (finding,) = conclude(nodes, results, LIMITS)
    assert (finding.node, finding.part, finding.level) == ("*", "n0 <-> n1", "note")


def test_a_link_so_lossy_that_its_test_does_not_end_is_told_as_lossy():
    cut_short = PairResult(a="a", b="b", error="bandwidth: nothing", lost_share=0.05, lost=20)
    assert [(check, level) for check, level, _ in judge(cut_short, [cut_short], LIMITS)] == [
        ("loss", "fail"),
        ("pair", "fail"),
    ]


def test_a_test_that_was_broken_off_blames_nobody():
    nodes = [f"n{i}" for i in range(6)]
    results = [
        PairResult(a="n0", b="n1", error="n1 died", is_aborted=True),
        PairResult(a="n2", b="n3", gbps_ab=20.0),
        PairResult(a="n4", b="n5", gbps_ab=20.0),
    ]
    alive = [node for node in nodes if node != "n1"]
    assert [set(pair) & {"n0"} for pair in plan_round(alive, results, LIMITS, 0)] == [{"n0"}]
    assert conclude(alive, results, LIMITS) == []


def test_the_floor_by_the_advertised_speed_holds_for_two_nodes():
    slow = PairResult(a="a", b="b", gbps_ab=0.01, gbps_ba=9.0, advertised_gbps=10.0)
    assert judge(slow, [slow], LIMITS)[0][:2] == ("bandwidth", "fail")
    fine = PairResult(a="a", b="b", gbps_ab=0.3, gbps_ba=9.0, advertised_gbps=10.0)
    assert judge(fine, [fine], LIMITS) == []


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others():
    nodes = [f"n{i}" for i in range(20)]
    assert plan_round(nodes, [], LIMITS, 1) == plan_round(nodes, [], LIMITS, 1)
    assert plan_round(nodes, [], LIMITS, 1) != plan_round(nodes, [], LIMITS, 2)


def test_a_result_survives_json_and_garbage_is_refused():
    result = PairResult(a="a", b="b", gbps_ab=3.0, frame_ok=True)
    assert decode(PairResult, encode(result)) == result
    with pytest.raises(ValueError, match="gbps_ab"):
        decode(PairResult, {"a": "a", "b": "b", "gbps_ab": "fast"})


def test_a_node_that_was_slow_in_a_busy_moment_is_tried_once_more_and_then_not_named():
    nodes = ["n0", "n1", "n2"]
    results = [
        PairResult(a="n0", b="n1", round=1, gbps_ab=1.0, gbps_ba=20.0),
        PairResult(a="n1", b="n2", round=2, gbps_ab=1.0, gbps_ba=20.0),
        PairResult(a="n0", b="n2", round=3, gbps_ab=20.0, gbps_ba=20.0),
    ]
    ((suspect, partner),) = plan_round(nodes, results, LIMITS, 0)
    assert suspect == "n1"
    blamed = conclude(nodes, results, LIMITS)
    assert [f.node for f in blamed if f.level == "fail"] == ["n1"]
    again = PairResult(a=suspect, b=partner, round=4, gbps_ab=19.0, gbps_ba=20.0)
    assert {f.level for f in conclude(nodes, [*results, again], LIMITS)} <= {"note"}
    assert plan_round(nodes, [*results, again], LIMITS, 0) == []
