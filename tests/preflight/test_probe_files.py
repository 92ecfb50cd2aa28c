from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.checks.pairs import PairResult
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import Resolution
from hpc_train.preflight.options import Policy, PreflightOptions, PreflightRequest
from hpc_train.preflight.probe_files import collect, deadline_s, new_token, write_options
from hpc_train.preflight.probe_results import ProbeResults, assemble, lost_node
from hpc_train.preflight.run_preflight import (
    check_this_host,
    preflight_options,
    run_preflight,
)

from .made_sysfs import ib_node, tcp_node

NAMES = ("node1", "node2", "node3")


def options(tmp_path, **changes):
    return PreflightOptions(**({"nodes": NAMES, "folder": str(tmp_path / "run")} | changes))


def request(tmp_path, **changes):
    known = {"nodes": NAMES, "folder": tmp_path / "run", "environ": {}, "cwd": str(tmp_path)}
    return PreflightRequest(**(known | {"python": sys.executable} | changes))


def three(make=ib_node):
    return [make(number) for number in (1, 2, 3)]


def bad(verdict):
    return [(f.node, f.check, f.level) for f in verdict.findings if f.level in ("warn", "fail")]


def pairs():
    return tuple(
        PairResult(a=a, b=b, round=i + 1, gbps_ab=9.0, gbps_ba=9.0, frame_ok=True)
        for i, (a, b) in enumerate((NAMES[:2], NAMES[1:], NAMES[::2]))
    )


def test_this_host_alone_gets_an_answer_without_talking_to_anybody(tmp_path):
    verdict = check_this_host(options(tmp_path, nodes=("here",)), {})
    assert verdict.verdict in ("go", "go-degraded")
    assert {"pairs", "collective"} <= {item.part for item in verdict.skipped}
    assert any(item.name == "GLOO_SOCKET_IFNAME" for item in verdict.environment)


def test_a_made_host_alone_is_judged_by_its_own_faults(tmp_path):
    root = ib_node(1).port("mlx5_0", lid=0).write(tmp_path / "root")
    verdict = check_this_host(options(tmp_path, nodes=("node1",), root=str(root)), {})
    assert bad(verdict) == [("node1", "lid", "fail")]
    assert verdict.verdict == "no-go"


def test_a_host_alone_that_may_lock_no_memory_has_tcp_which_is_told_and_stops_nothing(tmp_path):
    root = replace(ib_node(1), memlock="65536").write(tmp_path / "root")
    verdict = check_this_host(options(tmp_path, nodes=("node1",), root=str(root)), {})
    assert bad(verdict) == [("*", "transport", "warn")]
    assert (verdict.verdict, verdict.transport) == ("go-degraded", "TCP")
    assert "0.0625 MiB may be locked" in verdict.summary[1]


def test_off_says_that_nothing_was_looked_at(tmp_path):
    verdict = run_preflight(PreflightConfig(mode="off"), request(tmp_path))
    assert verdict.verdict == "go"
    reason = "preflight.mode is off: nothing was checked"
    assert verdict.summary[-1] == f"skipped: everything: {reason}"
    assert not (tmp_path / "run").exists()


def test_off_still_tells_of_a_node_on_which_the_ranks_could_not_be_started(tmp_path):
    lost = {"node2": "Communication connection failure"}
    asked = request(tmp_path, unreachable=lost, wanted=2)
    verdict = run_preflight(PreflightConfig(mode="off"), asked)
    assert (verdict.verdict, verdict.bad_nodes) == ("go", ("node2",))
    assert verdict.use_nodes == ("node1", "node3")


def test_one_node_without_gpus_is_not_worth_a_step_before_a_training(tmp_path):
    verdict = run_preflight(PreflightConfig(), request(tmp_path, nodes=("node1",)))
    assert verdict.verdict == "go"
    assert "one node without GPUs: nothing to check" in verdict.summary[-1]


@pytest.mark.parametrize(
    ("name", "value"), [("timeout_s", 0), ("rendezvous_s", 0.0), ("pair_s", -1), ("wanted", 4)]
)
def test_an_option_that_cannot_be_meant_is_refused_by_name(tmp_path, name, value):
    with pytest.raises(ConfigError, match=name if name != "wanted" else "4 nodes are wanted"):
        options(tmp_path, **{name: value})


def test_options_survive_their_file_and_hold_no_token(tmp_path):
    given = options(
        tmp_path,
        thresholds=Thresholds(memlock_mib=1),
        policy=Policy(on_degraded="no-go"),
        user_env={"NCCL_DEBUG": "INFO"},
        wanted=2,
    )
    path = write_options(given)
    assert PreflightOptions.from_json(json.loads(path.read_text())) == given
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "token" not in path.read_text().lower()


def test_full_measures_longer_and_waits_longer(tmp_path):
    quick = preflight_options(PreflightConfig(), request(tmp_path))
    full = preflight_options(PreflightConfig(mode="full"), request(tmp_path))
    assert full.bandwidth_s > quick.bandwidth_s
    assert deadline_s(full) > deadline_s(quick) > quick.timeout_s
    assert quick.timeout_s == PreflightConfig.budget_s


def test_a_larger_budget_waits_longer_for_nodes_that_start_late_and_a_smaller_one_no_less(tmp_path):
    usual, twice, half = (
        preflight_options(PreflightConfig(budget_s=budget_s), request(tmp_path))
        for budget_s in (20.0, 40.0, 10.0)
    )
    # A node that never comes, or falls silent, is named within ten seconds.
    assert usual.rendezvous_s + usual.silence_s <= 10
    for name in ("rendezvous_s", "silence_s", "pair_s"):
        assert getattr(twice, name) == 2 * getattr(usual, name)
        assert getattr(half, name) == getattr(usual, name)


def test_tokens_are_long_and_never_the_same():
    assert len({new_token() for _ in range(50)}) == 50
    assert len(new_token()) >= 32


def test_only_the_variables_that_matter_are_taken_from_the_users_environment(tmp_path):
    env = {"NCCL_DEBUG": "INFO", "GLOO_X": "1", "MASTER_ADDR": "n1", "AWS_SECRET": "x"}
    taken = preflight_options(PreflightConfig(), request(tmp_path, environ=env)).user_env
    assert "AWS_SECRET" not in taken
    assert len(taken) == 3


def resolved(nodes, answers):
    return [
        replace(node, resolution=Resolution(name="node1", **answer))
        for node, answer in zip(nodes, answers, strict=True)
    ]


GOOD = {"addresses": ("10.0.0.1",)}


@pytest.mark.parametrize(
    ("node", "answer", "level"),
    [
        (1, {"addresses": ("127.0.0.1",)}, "fail"),
        (2, {"addresses": ("127.0.1.1", "::1")}, "fail"),
        (1, {"error": "cannot be resolved: Name or service not known"}, "fail"),
        (2, {"addresses": ("10.9.9.9",)}, "warn"),
        (0, {"addresses": ("127.0.0.1",)}, "warn"),
    ],
)
def test_a_node_on_which_the_masters_name_means_something_else_is_named(
    seen, tmp_path, node, answer, level
):
    answers = [GOOD, GOOD, GOOD]
    answers[node] = answer
    nodes = resolved(seen(*three()), answers)
    verdict = assemble(nodes, ProbeResults(pairs=pairs()), options(tmp_path))
    assert bad(verdict) == [(f"node{node + 1}", "master_name", level)]


def test_debians_own_name_in_etc_hosts_is_no_alarm(seen, tmp_path):
    nodes = resolved(seen(*three()), [{"addresses": ("127.0.1.1",)}, GOOD, GOOD])
    verdict = assemble(nodes, ProbeResults(pairs=pairs()), options(tmp_path))
    assert bad(verdict) == []
    assert any(f.check == "master_name" and f.level == "note" for f in verdict.findings)


def test_a_clock_that_is_off_is_named_by_the_median_even_on_the_first_node(seen, tmp_path):
    nodes = seen(*three())
    for wrong in range(3):
        clocks = {name: (0.001 * i, 0.0005) for i, name in enumerate(NAMES)}
        if wrong == 0:
            clocks = dict.fromkeys(NAMES, (-3600.0 + 0.01, 0.001)) | {"node1": (0.0, 0.001)}
        else:
            clocks[NAMES[wrong]] = (3600.0, 0.001)
        trial = ProbeResults(pairs=pairs(), clocks=clocks)
        verdict = assemble(nodes, trial, options(tmp_path))
        assert bad(verdict) == [(NAMES[wrong], "clock", "warn")]


def test_two_clocks_that_disagree_name_nobody(seen, tmp_path):
    nodes = seen(*three()[:2])
    trial = ProbeResults(pairs=pairs()[:1], clocks={"node1": (0.0, 0.1), "node2": (60.0, 0.1)})
    verdict = assemble(nodes, trial, options(tmp_path, nodes=NAMES[:2]))
    assert bad(verdict) == [("*", "clock", "warn")]


def test_link_errors_during_the_test_name_the_port(seen, tmp_path):
    counters = {"node2": {"mlx5_0:1/symbol_error": 120, "mlx5_1:1/link_downed": 0}}
    nodes = seen(*three())
    verdict = assemble(nodes, ProbeResults(pairs=pairs(), counters=counters), options(tmp_path))
    assert bad(verdict) == [("node2", "counters", "warn")]
    few = ProbeResults(pairs=pairs(), counters={"node2": {"mlx5_0:1/symbol_error": 1}})
    assert bad(assemble(nodes, few, options(tmp_path))) == []


def test_a_lost_node_is_replaced_by_the_spare_and_still_told(seen, tmp_path):
    lost = lost_node("node2", "alive", "not a word for 3 s")
    trial = ProbeResults(lost=(lost,), pairs=pairs()[2:])
    nodes = [node for node in seen(*three()) if node.node != "node2"]
    verdict = assemble(nodes, trial, options(tmp_path, wanted=2))
    assert verdict.verdict == "go"
    assert verdict.use_nodes == ("node1", "node3")
    assert verdict.bad_nodes == ("node2",)
    without_spare = assemble(nodes, trial, options(tmp_path))
    assert without_spare.verdict == "no-go"
    assert without_spare.use_nodes == NAMES


def test_a_spare_that_nobody_needs_is_left_out(seen, tmp_path):
    verdict = assemble(seen(*three()), ProbeResults(pairs=pairs()), options(tmp_path, wanted=2))
    assert verdict.use_nodes == ("node1", "node2")
    assert set(verdict.addresses) == {"node1", "node2"}


def test_a_node_that_met_no_other_is_unknown_and_no_pass(seen, tmp_path):
    verdict = assemble(seen(*three()), ProbeResults(pairs=pairs()[:1]), options(tmp_path))
    assert ("node3", "pair", "unknown") in [(f.node, f.check, f.level) for f in verdict.findings]


def test_gloo_over_ethernet_does_not_hear_of_infiniband(seen, tmp_path):
    made = three()
    made[2] = made[2].without_hcas()
    verdict = assemble(seen(*made), ProbeResults(pairs=pairs()), options(tmp_path, is_nccl=False))
    assert verdict.verdict == "go", verdict.summary


def test_no_probe_that_started_is_our_fault_and_the_policy_decides(tmp_path):
    given = options(tmp_path)
    write_options(given)
    assert collect(given).verdict == "go-degraded"
    assert "NOTHING WAS CHECKED" in collect(given).summary[0]
    assert "did not start" in " ".join(collect(given).summary)
    for policy in (Policy(on_broken="no-go"), Policy(on_unchecked="no-go")):
        assert collect(options(tmp_path, policy=policy)).verdict == "no-go"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"verdict": "maybe"}'])
def test_a_verdict_that_cannot_be_read_is_no_pass(tmp_path, text):
    given = options(tmp_path, policy=Policy(on_broken="no-go"))
    folder = write_options(given).parent
    (folder / "preflight.json").write_text(text)
    assert collect(given).verdict == "no-go"


def test_a_first_node_without_a_verdict_is_named_when_others_lost_it(tmp_path):
    given = options(tmp_path)
    folder = write_options(given).parent
    for made in three(tcp_node):
        node = collect_inventory(made.write(tmp_path / made.name), {}, lambda: 1.0, node=made.name)
        (folder / f"look-{made.name}.json").write_text(json.dumps(node.to_json()))
    for name in NAMES[1:]:
        (folder / f"lost-{name}.json").write_text("{}")
    verdict = collect(given)
    assert verdict.bad_nodes == ("node1",)
    assert "pairs" in {item.part for item in verdict.skipped}
    assert verdict.use_nodes == NAMES
