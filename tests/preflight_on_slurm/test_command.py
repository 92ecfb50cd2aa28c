"""`hpc-train preflight` on the cluster: what it cannot tell, what breaks, what it says of both."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preflight_on_slurm.lab import GPUS, PATIENT, Lab, hooked

pytestmark = pytest.mark.slurm


def test_infiniband_that_is_down_everywhere_is_the_fabric_and_no_node(lab: Lab) -> None:
    for node in lab.cluster.nodes:
        for hca in ("mlx5_0", "mlx5_1"):
            lab.port(node, hca, state="2: INIT", lid="0x0", sm_lid="0x0")
    said = lab.check(*GPUS)
    assert (said.verdict, said.named) == ("go-degraded", set())
    assert said.environment["NCCL_IB_DISABLE"] == "1"
    assert "2 to 5 times" in said.reason("NCCL_IB_DISABLE")


def test_variables_of_infiniband_say_who_lacks_what(lab: Lab) -> None:
    lab.without_hcas("node3")
    said = lab.check(*GPUS)
    assert said.reason("NCCL_IB_DISABLE").startswith("node3: no HCA")


@pytest.mark.parametrize("strict", [False, True])
def test_a_preflight_that_could_check_nothing_is_no_go_for_who_asked_for_one(
    lab: Lab, strict: bool
) -> None:
    said = lab.check(*["--strict"] * strict, env=hooked("*", "no start"))
    assert (said.verdict, said.code) == ("no-go", 3)
    assert "NOTHING WAS CHECKED" in said.document["summary"][0]
    assert "this python does not start" in " ".join(said.document["summary"])
    assert said.skipped()["everything"]
    assert not said.named


def test_a_check_with_a_fault_of_its_own_is_unknown_and_stops_nothing(lab: Lab) -> None:
    said = lab.check(env=hooked("*", "broken check"))
    assert said.verdict == "go"
    (finding,) = said.findings(check="shm")
    assert finding["level"] == "unknown"
    assert "ZeroDivisionError" in finding["evidence"]


@pytest.mark.parametrize(
    ("variables", "level", "told"),
    [
        ({"NCCL_SOCKET_IFNAME": "hsn"}, "fail", "matches no interface"),
        ({"NCCL_SOCKET_IFNAME": "^docker0"}, "warn", "lets lo (loopback) in"),
        ({"GLOO_SOCKET_IFNAME": "^lo"}, "fail", "gloo takes full names"),
        ({"NCCL_IB_HCA": "mlx6"}, "fail", "matches no ACTIVE port"),
        ({"NCCL_IB_DISABLE": "1", "NCCL_NET": "IB"}, "fail", "contradict each other"),
        ({"MASTER_ADDR": "localhost"}, "fail", "means another machine on each node"),
    ],
)
def test_variables_of_the_user_win_and_are_told_where_they_cannot_work(
    lab: Lab, variables: dict[str, str], level: str, told: str
) -> None:
    said = lab.check(*GPUS, env=variables)
    found = [item for item in said.findings(check="user_env") if told in item["evidence"]]
    assert {item["level"] for item in found} == {level}
    assert said.verdict == ("no-go" if level == "fail" else "go-degraded")
    assert not said.named, [item for item in said.findings() if item["node"] != "*"]
    for name, value in variables.items():
        assert said.environment.get(name, value) == value


def test_a_sysfs_file_that_is_empty_or_unreadable_is_unknown_and_no_pass(lab: Lab) -> None:
    lab.port("node2", "mlx5_1", state="")
    rate = lab.cluster.layout.node_dir("node2") / "class/infiniband/mlx5_0/ports/1/rate"
    lab.unreadable(rate)
    said = lab.check(*GPUS)
    (finding,) = said.findings("node2", "port_state")
    assert finding["level"] == "unknown"
    told = {Path(item["part"]).name for item in said.findings("node2", "readable")}
    assert told == {"state", "rate"}
    assert not said.bad


def test_in_full_the_ranks_own_collective_is_tried_with_gloo(lab: Lab) -> None:
    said = lab.check("--full")
    (finding,) = said.findings(check="collective")
    assert (finding["level"], finding["part"], finding["evidence"]) == ("ok", "gloo", "3 nodes")
    assert "collective" not in said.skipped()


def test_a_collective_that_does_not_start_is_no_pass_and_no_reason_to_stop(lab: Lab) -> None:
    said = lab.check("--full", env=hooked("*", "no collective"))
    assert said.verdict == "go"
    assert "this rank does not start" in said.skipped()["collective"]
    (finding,) = said.findings(check="preflight")
    assert (finding["level"], finding["part"]) == ("unknown", "collective")


def test_the_quick_one_says_that_the_collective_was_not_tried(lab: Lab) -> None:
    assert "--full" in lab.check().skipped()["collective"]


def test_inside_an_allocation_its_nodes_are_checked_and_its_gpus_known(lab: Lab) -> None:
    words = ["--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2"]
    inside = ["-m", "hpc_train.cli", "preflight", "--json", *PATIENT]
    done = subprocess.run(
        ["salloc", "--quiet", *words, sys.executable, *inside],
        cwd=lab.folder, env=lab.environ(), capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["use_nodes"] == ["node1", "node2"]
    assert "NCCL_IB_HCA" in {item["name"] for item in document["environment"]}
    assert {item["check"] for item in document["findings"]} >= {"port_state", "memlock"}


def test_while_slurm_keeps_it_waiting_it_says_why_and_since_when(lab: Lab) -> None:
    holder = lab.cluster.sbatch(["--nodes=4", "--exclusive", "--time=5"], "#!/bin/sh\nsleep 600\n")
    lab.cluster.wait(holder, "RUNNING")
    with lab.start(nodes=4) as running:
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == "asking Slurm for 4 nodes\n"
        line = running.process.stderr.readline()
        assert re.match(r"job \d+ waits since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d: [A-Z]\w+", line), line
        lab.cluster.cancel(holder)
        assert running.said().verdict == "go"


def test_a_run_and_new_nodes_contradict_each_other(lab: Lab) -> None:
    assert lab.command("preflight", "anything", "--nodes", "2").returncode == 2
    assert lab.command("preflight", "--attempt", "2").returncode == 2
    assert lab.command("preflight", "no-such-run").returncode == 5
