"""What is the same on every node is the site's: told once, nobody blamed, never tried again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from hpc_train.runs.events import EventKind, read_events
from tests.cluster import faults, sysfs
from tests.faults.running import Training, hpc_train, until
from tests.faults.running import submit as submit_training
from tests.preflight_on_slurm.lab import GPUS, PATIENT_CONFIG, Lab, Said, unlimited_memlock

pytestmark = pytest.mark.slurm
FOUR = ("slurm.nodes=4", "global_batch_size=8")
ALL = ("node1", "node2", "node3", "node4")


def submit(lab: Lab, *words: str, env: Mapping[str, str] | None = None) -> Training:
    return submit_training(
        lab.cluster, lab.folder, *PATIENT_CONFIG, "preflight.mode=quick", *words, env=env
    )


def without_verbs(lab: Lab, nodes: Collection[str]) -> None:
    """No process on these nodes can open an HCA, until the next reset."""
    for node in nodes:
        number = lab.cluster.nodes[node].number
        lab.cluster.on_reset(
            lambda node=node, number=number: sysfs.set_hcas(
                lab.cluster, node, sysfs.healthy(number), keep=True
            )
        )
        devices = [f"/dev/infiniband/uverbs{i}" for i in range(2)]
        lab.cluster.node_exec(node, ["rm", *devices])


def low_memlock(lab: Lab, nodes: Collection[str]) -> None:
    for node in nodes:
        faults.limit_memlock(lab.cluster, node, 8192 - 1)


def _only_attempt(training: Training) -> dict[str, Any]:
    attempts = training.status()["attempts"]
    assert len(attempts) == 1, training.story()
    return dict(attempts[0])


def levels(said: Said, check: str) -> dict[str, str]:
    return {item["node"]: item["level"] for item in said.findings(check=check)}


def dead_port(lab: Lab, node: str) -> None:
    lab.port(node, "mlx5_1", state="1: DOWN", phys_state="2: Polling", lid="0x0", sm_lid="0x0")


def test_no_verbs_and_8_mib_of_memlock_everywhere_and_one_dead_port_train_over_tcp(
    lab: Lab,
) -> None:
    """Seen: refused four times over two job ids, and ended without a step."""
    without_verbs(lab, ALL)
    low_memlock(lab, ALL)
    dead_port(lab, "node3")
    said = lab.check(*GPUS, nodes=4)
    assert (said.verdict, said.code, said.named) == ("go-degraded", 0, set())
    assert said.environment["NCCL_IB_DISABLE"] == "1"
    for check in ("memlock", "verbs"):
        assert levels(said, check) == dict.fromkeys(ALL, "note")
        (line,) = [x for x in said.document["summary"] if f" {check}: " in x]
        assert line.startswith("note: node[1-4] ")
    assert levels(said, "port_state") == {"node3": "note"}
    # Beside these: the answer, the transport, and the GPUs that no NVML can see here.
    told = [x for x in said.document["summary"] if not x.startswith("skipped")]
    assert len(told) == 6, told

    gpu = [*FOUR, "trainer.accelerator=gpu", "requeue.budget=3"]
    training = submit(lab, *gpu)
    # There is no GPU here, so the ranks end at once: but they were let start.
    assert training.wait_end() == "failed", training.story()
    kinds = [event.kind for event in read_events(training.run.events)]
    assert kinds.count(EventKind.RANKS_STARTED) == 1
    document = json.loads(training.run.attempt(0).preflight.read_text())
    assert (document["verdict"], document["bad_nodes"]) == ("go-degraded", [])


@pytest.mark.parametrize(
    ("count", "lacking", "verdict", "named"),
    [
        (1, ["node1"], "go-degraded", []),
        (2, ["node1", "node2"], "go-degraded", []),
        (2, ["node2"], "no-go", ["node2"]),
        (3, ["node1", "node2", "node3"], "go-degraded", []),
        (3, ["node1", "node3"], "go-degraded", []),  # exactly one could
        (3, ["node3"], "no-go", ["node3"]),
        (4, ["node2", "node3"], "no-go", ["node2", "node3"]),  # half of them
        (4, ["node1", "node2", "node4"], "go-degraded", []),
    ],
)
def test_what_most_nodes_lack_is_the_sites_and_what_a_few_lack_is_theirs(
    lab: Lab, count: int, lacking: list[str], verdict: str, named: list[str]
) -> None:
    without_verbs(lab, lacking)
    said = lab.check(*GPUS, nodes=count)
    assert (said.verdict, said.named) == (verdict, set(named)), said.document["summary"]
    assert said.code == (3 if named else 0)


def test_a_site_wide_no_by_the_users_policy_is_said_once_with_the_fix_and_not_tried_again(
    lab: Lab,
) -> None:
    low_memlock(lab, ALL)
    words = ["slurm.nodes=3", "trainer.accelerator=gpu", "requeue.budget=3"]
    training = submit(lab, *words, "preflight.allow_degraded=false")
    assert training.wait_end() == "failed", training.story()
    only = _only_attempt(training)
    assert only["decision"] == "stop"
    assert "every node has it" in only["decision_reason"]
    assert "LimitMEMLOCK=infinity" in only["reason"]
    assert not only["blamed"]


def test_a_bad_node_that_cannot_be_left_out_is_not_tried_again(lab: Lab) -> None:
    faults.slow_cable(lab.cluster, "node2", 10)
    training = submit(lab, *FOUR, "requeue.budget=3")
    assert training.wait_end() == "failed", training.story()
    only = _only_attempt(training)
    assert only["blamed"] == ["node2"]
    assert "node2 cannot be left out, since 4 nodes are needed" in only["decision_reason"]


def test_the_history_is_short_and_the_rest_is_under_preflight_run(lab: Lab) -> None:
    for node in ("node1", "node2", "node4"):
        faults.small_shm(lab.cluster, node, 16)
    without_verbs(lab, ["node3"])
    words = [*FOUR, "trainer.accelerator=gpu"]
    training = submit(lab, *words, env=unlimited_memlock())
    until(training.end, "the end", 180)
    history = hpc_train(lab.cluster, "status", str(training.run.path)).stdout.splitlines()
    whole = ("folder", "fix")  # they are to be copied
    assert max(len(line) for line in history if not line.strip().startswith(whole)) <= 200
    start = next(i for i, line in enumerate(history) if line.startswith("    network"))
    # What the first line says already is not said again.
    ends = ("    what", "    steps")
    after = next(i for i, line in enumerate(history) if line.startswith(ends))
    assert after - start <= 3
    for reference in (str(training.run.path), training.job_id, training.run.run_id):
        found = ("preflight", reference, "--attempt", "0")
        done = hpc_train(lab.cluster, *found, env={"HPC_TRAIN_RUNS_DIR": str(lab.folder / "runs")})
        assert done.returncode == 0, done.stderr
        assert "warn: node[1-2,4] /dev/shm shm" in done.stdout
        assert "fail: node3 verbs verbs" in done.stdout
    document = json.loads(
        hpc_train(lab.cluster, "preflight", str(training.run.path), "--json").stdout
    )
    assert document["attempt"] == 0
    assert [f["node"] for f in document["findings"] if f["check"] == "shm"] == [
        "node1", "node2", "node4",
    ]  # fmt: skip
    none = hpc_train(lab.cluster, "preflight", str(training.run.path), "--attempt", "7")
    assert none.returncode == 1
    assert "attempt 7" in none.stderr
