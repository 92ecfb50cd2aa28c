"""`hpc-train doctor --nodes N`: equal answers are one line, and a node without one fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.doctor.on_nodes import answer_lines, findings_of_nodes, report_node
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.inventory.collect_inventory import node_name
from hpc_train.preflight.verdict import together
from tests.cluster import Cluster

SAME = Finding("", "", "torch", "ok", "2.9.0")
OTHER = Finding("", "", "torch", "ok", "2.8.0")
SRUN = "srun: error: Task launch for StepId=7.0 failed on node n3: Communication connection failure"


def answer(node: str, *findings: Finding) -> str:
    return answer_lines(node, findings)


def test_equal_answers_are_one_line_with_a_hostlist() -> None:
    lines = [answer("n2", SAME), "Loading modules", answer("n10", OTHER), answer("n1", SAME)]
    said = together(findings_of_nodes(["n1", "n2", "n10"], "\n".join(lines), ""))
    assert [(where, item.evidence) for where, item in said] == [
        ("n[1-2]", "2.9.0"),
        ("n10", "2.8.0"),
    ]


def test_answers_of_any_length_come_whole_though_srun_mixes_their_lines() -> None:
    """Of a line over 1,024 bytes srun may give a part, and another node's words after it."""
    long = Finding("", "", "torch", "ok", "a long answer, " * 300)
    mine, theirs = (answer(node, long, SAME).splitlines() for node in ("n1", "n2"))
    assert max(map(len, mine)) < 1024
    mixed = [line for pair in zip(mine, theirs, strict=True) for line in pair]
    said = together(findings_of_nodes(["n1", "n2"], "\n".join(mixed), ""))
    assert [(where, item.evidence) for where, item in said] == [
        ("n[1-2]", long.evidence),
        ("n[1-2]", SAME.evidence),
    ]
    mixed.remove(theirs[2])
    *_, last = findings_of_nodes(["n1", "n2"], "\n".join(mixed), "")
    assert (last.node, last.check, last.level) == ("n2", "answer", "fail")


@pytest.mark.parametrize(
    ("stderr", "words"),
    [(SRUN, "Communication connection failure"), ("", "srun said nothing"), ("x\nlast\n", "last")],
)
def test_a_node_that_is_silent_fails_with_the_words_of_srun(stderr: str, words: str) -> None:
    *_, last = findings_of_nodes(["n1", "n3"], answer("n1", SAME), stderr)
    assert (last.node, last.level) == ("n3", "fail")
    assert words in last.evidence


@pytest.mark.torch
def test_a_node_that_does_not_see_the_folder_of_runs_fails(tmp_path: Path) -> None:
    for folder, level in ((tmp_path, "ok"), (tmp_path / "of another node", "fail")):
        line = report_node(tmp_path / "runs", folder)
        found = findings_of_nodes([node_name(os.environ)], line, "")
        assert [item.level for item in found if item.check == "shared"] == [level]


@pytest.mark.slurm
@pytest.mark.parametrize("count", [1, 2])
def test_the_nodes_are_looked_at_by_srun(
    slurm_cluster: Cluster, tmp_path: Path, count: int
) -> None:
    argv = [sys.executable, "-m", "hpc_train.cli", "doctor", f"--nodes={count}", "--json"]
    done = subprocess.run(
        argv, cwd=tmp_path, env=slurm_cluster.env(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    lines = {item["check"]: item for item in json.loads(done.stdout)["checks"]}
    nodes = lines["torch"]["nodes"]
    assert (nodes.startswith("node"), "[" in nodes or "," in nodes) == (True, count > 1)
    for check in ("shared", "scontrol in a job", "rename", "locks"):
        assert (lines[check]["level"], lines[check]["nodes"]) == ("pass", nodes)
    assert lines["slurm"]["text"].endswith(f"cluster {slurm_cluster.spec.cluster_name}")
    assert "train" in lines["MaxTime"]["text"]
    assert list(tmp_path.iterdir()) == []
