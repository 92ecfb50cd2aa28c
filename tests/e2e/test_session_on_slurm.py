"""A loop with a Session that sbatch and srun start, without any word of hpc-train's."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.conftest import Shell

pytestmark = pytest.mark.slurm
LOOP = """
import os, time
import torch, hpc_train
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(48.0).reshape(48, 1))
with hpc_train.Session.open(run_dir="runs/mine", global_batch_size=6) as session:
    plain = torch.nn.Linear(1, 1)
    model = torch.nn.parallel.DistributedDataParallel(plain) if session.world_size > 1 else plain
    optimizer = torch.optim.SGD(model.parameters(), 1e-5)
    session.restore(model=model, optimizer=optimizer)
    for epoch in session.epochs(3):
        for (x,) in session.batches(DataLoader(data)):
            (model(x).square().mean() / session.accumulate).backward()
            if session.step_is_due:
                optimizer.step()
                optimizer.zero_grad()
                session.stepped()
                time.sleep(2 if os.environ["SLOW"] else 0)
"""


@pytest.mark.parametrize("nodes", [2, 3])
def test_a_plain_srun_with_one_task_a_node_trains_is_seen_stopped_and_goes_on(
    site: Shell, slurm_cluster: Cluster, nodes: int
) -> None:
    (site.folder / "loop.py").write_text(LOOP)

    def start(slow: str) -> str:
        body = f"cd {site.folder}\nSLOW={slow} srun {sys.executable} loop.py\n"
        arguments = [f"--nodes={nodes}", "--ntasks-per-node=1", "--partition=train"]
        return slurm_cluster.sbatch(arguments, f"#!/bin/bash\n{body}")

    job = start("yes")
    run = str(site.folder / "runs" / "mine")
    slurm_cluster.wait(job, "RUNNING", timeout_s=240)
    deadline = time.monotonic() + 240
    while not (Path(run) / "events.jsonl").exists():
        assert time.monotonic() < deadline, slurm_cluster.output(job)
        time.sleep(0.2)
    running = site.wait_until(run, lambda status: status["step"] >= 2)
    assert (running["state"], running["job_id"]) == ("running", job)
    (listed,) = json.loads(site.hpc("list", "--json").stdout)["runs"]
    assert (listed["name"], listed["state"]) == ("mine", "running")
    (Path(run) / "stop").touch()
    stopped = site.ended(run)
    assert stopped["state"] == "cancelled", slurm_cluster.output(job)
    again = start("")
    slurm_cluster.wait(again, "COMPLETED", timeout_s=240)
    ended = site.status(run)
    assert (ended["state"], ended["step"], len(ended["attempts"])) == ("completed", 24, 2)
    assert ended["attempts"][1]["first_step"] == stopped["step"] > 0
