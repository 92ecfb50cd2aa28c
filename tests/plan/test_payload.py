"""What an attempt starts, as command lines."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.plan.payload import payload_of
from hpc_train.plan.plan import ScriptPlan
from tests.training.launched import make_plan


def test_srun_starts_one_rank_and_torchs_launcher_those_of_a_node(tmp_path: Path) -> None:
    payload = payload_of(make_plan(tmp_path, nodes=3, ranks_per_node=2))
    python, *rank = payload.rank_argv()
    assert rank == ["-m", "hpc_train.training"]
    for node in (0, 2):
        launcher = payload.node_argv(node, port=4711)
        assert launcher[:3] == [python, "-m", "torch.distributed.run"]
        assert {"--nnodes=3", "--nproc-per-node=2", f"--node-rank={node}"} < set(launcher)
        assert "--master-port=4711" in launcher
        assert launcher[-2:] == rank, "what is started is the same"


@pytest.mark.parametrize("name", ["SLURM_NODEID", "NODE_RANK"])
def test_torchrun_is_started_once_a_node_by_the_nodes_own_number(tmp_path: Path, name: str) -> None:
    plan = make_plan(tmp_path, nodes=3, ranks_per_node=2)
    payload = payload_of(replace(plan, script=ScriptPlan("train.py", [], launcher="torchrun")))
    assert payload.is_one_a_node
    shell = [*payload.rank_argv()[:2], payload.rank_argv()[2].replace("exec ", "echo ")]
    place = {name: "2", "MASTER_ADDR": "node1", "MASTER_PORT": "4711"}
    said = subprocess.run(shell, env=place, capture_output=True, text=True, check=True).stdout
    for word in ("--nnodes=3", "--node-rank=2", "--master-addr=node1", "--master-port=4711"):
        assert word in said.split()
    assert said.split()[-2:] == ["-m", "hpc_train.training.script_rank"]
    ordinary = payload_of(replace(plan, script=ScriptPlan("train.py", [])))
    assert not ordinary.is_one_a_node


def test_a_script_that_starts_its_own_ranks_is_one_process_a_node(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, nodes=3, ranks_per_node=2)
    payload = payload_of(replace(plan, script=ScriptPlan("train.py", [], launcher="none")))
    assert payload.is_one_a_node
    assert payload.rank_argv()[1:] == ["-m", "hpc_train.training.script_node", "2"]
    env, *words = payload.node_argv(1, 4711)
    assert env == "env"
    assert {"RANK=1", "WORLD_SIZE=3", "LOCAL_WORLD_SIZE=1", "MASTER_PORT=4711"} < set(words)
    assert words[-len(payload.rank_argv()) :] == payload.rank_argv()
