"""The script and the world on a real Slurm."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.plan.script import render_script
from tests.cluster import Cluster
from tests.plan.configs import config
from tests.plan.test_script import FAKE_PYTHON

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
# A rank: says where it is, or what it found wrong.
RANK = """
import dataclasses, json, os, sys
from pathlib import Path
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Shape
from hpc_train.plan.world import World
name, *planned = sys.argv[1:]
try:
    shape = Shape(int(planned[0]), int(planned[1]), 0) if planned else None
    world = World.from_env(os.environ, planned=shape)
    said = {**dataclasses.asdict(world), "host": os.uname().nodename}
except CheckError as error:
    said = {"error": error.message, "hint": error.hint}
file = f"{name}-{os.environ['SLURM_PROCID']}.json"
Path(os.environ["OUT"], file).write_text(json.dumps(said))
"""
NASTY_NAMES = [
    'it\'s a "name"; touch owned $(touch owned) `touch owned`',
    "%j \\%u # not a comment",
    "hetjob packjob",
    "grüße-日本",
]


def said(out: Path, name: str) -> list[dict[str, object]]:
    files = sorted(out.glob(f"{name}-*.json"), key=lambda path: int(path.stem.rsplit("-", 1)[1]))
    return [json.loads(path.read_text()) for path in files]


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_sbatch_takes_a_nasty_name_comment_and_value_as_they_are(
    name: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    python = tmp_path / "a 'python'"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    made = make_plan(
        config(
            name=name,
            trainer={"accelerator": "cpu"},
            slurm={"nodes": 1, "gpus_per_node": 1, "time": "5", "comment": name},
            env={"variables": {"VALUE": name, "OUT": str(tmp_path)}},
            global_batch_size=1,
        ),
        workdir=str(tmp_path),
        python=str(python),
        for_script=True,
    )
    script = tmp_path / "job.sbatch"
    script.write_text(render_script(made), encoding="utf-8")
    done = slurm_cluster.command(["sbatch", "--parsable", f"--chdir={tmp_path}", str(script)])
    job = done.stdout.strip()
    slurm_cluster.wait(job, "COMPLETED", timeout_s=300)
    pairs = (tmp_path / "environment").read_text(encoding="utf-8").split("\0")[:-1]
    environment = dict(pair.split("=", 1) for pair in pairs)
    assert environment["SLURM_JOB_NAME"] == name
    assert environment["VALUE"] == name
    assert (tmp_path / "folder").read_text().strip() == str(tmp_path)
    listed = slurm_cluster.command(["squeue", "--noheader", "-j", job, "-t", "all", "-o", "%j|%k"])
    assert listed.stdout.strip() == f"{name}|{name}"
    assert (tmp_path / f"slurm-{job}.log").is_file()
    assert not (tmp_path / "owned").exists()


def test_ranks_know_their_world_in_every_way_srun_starts_them(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    rank = tmp_path / "rank.py"
    rank.write_text(RANK)
    start = f"{shlex.quote(sys.executable)} {shlex.quote(str(rank))}"
    whole = "--nodes=3 --ntasks=12 --ntasks-per-node=4"
    steps = [
        f"{start} batch 3 4",
        f"srun {whole} {start} whole 3 4",
        f"srun --nodes=2 --ntasks=4 --ntasks-per-node=2 {start} part 2 2",
        f"srun {whole} --gpus-per-task=1 {start} own 3 4",
        f"srun {whole} --gres=gpu:4 {start} all 3 4",
        f"srun --nodes=3 --ntasks=6 --ntasks-per-node=2 {start} six 3 4",
        f"srun --nodes=3 --ntasks=10 {start} unequal",
        f"srun {whole} --distribution=cyclic {start} cyclic 3 4",
    ]
    script = f"#!/bin/bash\nexport OUT={tmp_path} PYTHONPATH={ROOT}\n" + "\n".join(steps) + "\n"
    arguments = ["--nodes=3", "--ntasks-per-node=4", "--gres=gpu:4", "--partition=train"]
    job = slurm_cluster.sbatch(arguments, script)
    slurm_cluster.wait(job, "COMPLETED", timeout_s=300)

    (batch,) = said(tmp_path, "batch")
    assert "12 ranks were planned (3 nodes x 4), but 1 started" in str(batch["error"])
    for name in ("whole", "own", "all"):
        ranks = said(tmp_path, name)
        assert [world["rank"] for world in ranks] == list(range(12)), slurm_cluster.output(job)
        assert [world["host"] for world in ranks] == [
            *["node1"] * 4,
            *["node2"] * 4,
            *["node3"] * 4,
        ]
        assert {world["master_addr"] for world in ranks} == {"node1"}
        assert len({world["master_port"] for world in ranks}) == 1
    assert [len(world["devices_visible"]) for world in said(tmp_path, "own")] == [1] * 12  # type: ignore[arg-type]
    assert [world["local_rank"] for world in said(tmp_path, "all")] == [0, 1, 2, 3] * 3
    assert [world["devices_visible"] for world in said(tmp_path, "all")] == [list("0123")] * 12
    assert [world["world_size"] for world in said(tmp_path, "part")] == [4] * 4
    assert ["12 ranks were planned" in str(world["error"]) for world in said(tmp_path, "six")] == [
        True
    ] * 6
    assert all("unequal ranks a node" in str(w["error"]) for w in said(tmp_path, "unequal"))
    assert len(said(tmp_path, "unequal")) == 10
    cyclic = said(tmp_path, "cyclic")
    assert ["--distribution=block" in str(world.get("hint")) for world in cyclic] == [True] * 12
