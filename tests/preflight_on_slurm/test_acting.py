"""What `hpc-train submit` does with the preflight's answer, on a cluster with bad nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import faults
from tests.faults.running import Training, hpc_train, submit, until
from tests.preflight_on_slurm.lab import PATIENT_CONFIG, Lab, hooked
from tests.preflight_on_slurm.many_nodes import dead

pytestmark = pytest.mark.slurm
SHORT = (*PATIENT_CONFIG, "preflight.mode=quick", "trainer.max_steps=4", "requeue.budget=1")


def begin(lab: Lab, *words: str, env: dict[str, str] | None = None) -> Training:
    return submit(lab.cluster, lab.folder, *SHORT, *words, env=env)


def document(training: Training, attempt: int = 0) -> dict[str, object]:
    return dict(json.loads(training.run.attempt(attempt).preflight.read_text()))


def ranks_nodes(training: Training, attempt: int = 0) -> set[str]:
    return {beat.node for beat in training.beats(attempt)}


def test_one_bad_node_is_left_out_and_the_good_ones_train_without_a_human(lab: Lab) -> None:
    faults.slow_cable(lab.cluster, "node2", 10)
    training = begin(lab)
    assert training.wait_end() == "completed", training.story()
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert first["blamed"] == first["excluded"] == ["node2"]
    assert "bandwidth" in first["reason"]
    assert first["first_step"] == first["last_step"] == 0
    assert second["nodes"] == ["node1", "node3", "node4"]
    assert document(training)["bad_nodes"] == ["node2"]
    history = hpc_train(lab.cluster, "status", str(training.run.path)).stdout
    assert "node2" in history
    assert "bandwidth" in history
    own = {"XDG_STATE_HOME": str(lab.folder / "state")}
    known = json.loads(hpc_train(lab.cluster, "nodes", "--json", env=own).stdout)["nodes"]
    assert [(bad["node"], bad["cluster"]) for bad in known] == [("node2", "preflight")]


def test_a_spare_takes_the_bad_nodes_place_at_once(lab: Lab) -> None:
    faults.slow_cable(lab.cluster, "node2", 10)
    training = begin(lab, "slurm.spares=1", "preflight.monitor_interval_s=0.5")
    assert training.wait_end() == "completed", training.story()
    (only,) = training.status()["attempts"]
    assert only["outcome"] == "completed"
    assert ranks_nodes(training) == {"node1", "node3", "node4"}
    assert document(training)["bad_nodes"] == ["node2"]
    samples = {path.stem: path.read_text() for path in training.run.monitor.glob("*.jsonl")}
    assert set(samples) == {"node1", "node3", "node4"}
    assert all(json.loads(text.splitlines()[0]) for text in samples.values())


@pytest.mark.parametrize("mode", ["quick", pytest.param("off", marks=pytest.mark.soak)])
def test_a_node_without_slurmd_is_named_by_srun_and_the_next_job_goes_without_it(
    lab: Lab, mode: str
) -> None:
    """In `off` the ranks' own srun says so; the probes may be done before srun has given up."""
    dead(lab.cluster, "node2")
    training = begin(lab, f"preflight.mode={mode}")
    assert training.wait_end() == "completed", training.story()
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["blamed"]) == ("node_failure", ["node2"])
    words = ["Communication connection failure"]
    words += ["its slurmd does not answer"] if mode == "quick" else []
    assert any(word in first["reason"] for word in words), first["reason"]
    assert second["nodes"] == ["node1", "node3", "node4"]


def test_where_nobody_can_be_named_the_budget_ends_it_and_the_reason_is_told(lab: Lab) -> None:
    for node in lab.cluster.nodes:
        faults.slow_cable(lab.cluster, node, 10)
    training = begin(lab)
    assert training.wait_end() == "failed", training.story()
    attempts = training.status()["attempts"]
    assert [item["outcome"] for item in attempts] == ["network_failure"] * 2
    assert not any(item["blamed"] for item in attempts)
    assert "nothing can be told apart" in attempts[-1]["reason"]


def test_off_checks_nothing_and_says_so(lab: Lab) -> None:
    faults.slow_cable(lab.cluster, "node2", 10)
    training = begin(lab, "preflight.mode=off")
    log = training.run.attempt(0).supervisor_log
    until(log.exists, "the supervisor's log", 120)
    until(lambda: "nothing was checked" in log.read_text(), "the answer in the log", 120)
    assert not list(training.run.attempt(0).path.glob("preflight/look-*"))
    assert "off" in str(document(training)["skipped"])


@pytest.mark.parametrize("strict", [False, True])
def test_a_preflight_that_breaks_stops_a_healthy_job_only_where_the_user_is_strict(
    lab: Lab, strict: bool
) -> None:
    words = ["preflight.strict=true", "requeue.budget=0"] if strict else []
    training = begin(lab, *words, env=hooked("*", "no start"))
    assert training.wait_end() == ("failed" if strict else "completed"), training.story()
    said = training.run.attempt(0).supervisor_log.read_text()
    assert f"preflight: {'no-go' if strict else 'go-degraded'}: NOTHING WAS CHECKED" in said
    assert "the probes did not start" in said
    assert "this python does not start" in said


def test_an_interface_that_the_user_names_and_nobody_has_is_told_and_not_tried_again(
    lab: Lab,
) -> None:
    training = begin(lab, "env.variables.NCCL_SOCKET_IFNAME=hsn")
    assert training.wait_end() == "failed", training.story()
    (only,) = training.status()["attempts"]
    assert only["outcome"] == "user_error"
    assert "NCCL_SOCKET_IFNAME" in only["reason"]
    assert not only["blamed"]


def test_the_same_on_one_node_is_told_before_its_ranks(lab: Lab) -> None:
    """gloo's words were a network failure, and tried three times again."""
    words = ("slurm.nodes=1", "slurm.gpus_per_node=2")
    training = begin(lab, *words, "env.variables.GLOO_SOCKET_IFNAME=ib7x")
    assert training.wait_end() == "failed", training.story()
    (only,) = training.status()["attempts"]
    assert (only["outcome"], only["blamed"]) == ("user_error", [])
    assert "'ib7x': no such interface with an address (there: " in only["reason"]
    assert "-> unset GLOO_SOCKET_IFNAME, or name one of those" in only["reason"]
    assert not list(training.run.attempt(0).path.glob("rank-*.log"))


def test_no_time_for_the_preflight_is_refused_before_anything_is_submitted(
    lab: Lab, tmp_path: Path
) -> None:
    config = Path(__file__).parents[1] / "faults" / "tiny.yaml"
    done = hpc_train(
        lab.cluster, "submit", str(config), f"runs_dir={tmp_path / 'runs'}", "preflight.budget_s=0"
    )
    assert done.returncode == 3
    assert "preflight.budget_s" in done.stderr
    assert "preflight: off" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.soak  # the same step is run by `preflight --full`, without a training after it
def test_the_result_of_the_collective_is_in_the_attempts_folder(lab: Lab) -> None:
    training = begin(lab, "preflight.mode=full", "slurm.nodes=2")
    assert training.wait_end() == "completed", training.story()
    findings = document(training)["findings"]
    (found,) = [item for item in findings if item["check"] == "collective"]
    assert (found["level"], found["part"]) == ("ok", "gloo")


def test_in_an_allocation_of_its_own_a_bad_node_is_told_once_and_not_tried_again(lab: Lab) -> None:
    """`salloc hpc-train run`: there are no other nodes to go to."""
    faults.slow_cable(lab.cluster, "node2", 10)
    config = str(Path(__file__).parents[1] / "faults" / "tiny.yaml")
    words = ["run", config, f"runs_dir={lab.folder / 'runs'}", *SHORT, "requeue.budget=3"]
    done = subprocess.run(
        ["salloc", "--quiet", "--nodes=3", sys.executable, "-m", "hpc_train.cli", *words],
        cwd=Path(__file__).parents[2], env=lab.environ({"XDG_STATE_HOME": str(lab.folder)}),
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 10, done.stderr
    (folder,) = (lab.folder / "runs" / "tiny").iterdir()
    (only,) = Training.at(lab.cluster, folder).status()["attempts"]
    assert only["blamed"] == ["node2"]
    assert "node2 cannot be left out, since 3 nodes are needed" in only["decision_reason"]
