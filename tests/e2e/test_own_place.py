"""A script that sets where its ranks meet: they meet where they were started, and it is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.e2e.conftest import Shell

# As scripts written for MPI have it: each process for itself, and a port that was free on its node.
SCRIPT = """\
import os
import socket
import torch
import torch.distributed as dist
with socket.socket() as free:
    free.bind(("", 0))
    os.environ["MASTER_PORT"] = str(free.getsockname()[1])
os.environ["MASTER_ADDR"] = "localhost"
dist.init_process_group("gloo", init_method="env://")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
print("rank", dist.get_rank(), "of", dist.get_world_size())
"""
ON_CPUS = ("script.accelerator=cpu", "preflight=off")


def trains(shell: Shell, *words: object, ranks: int, keys: Sequence[str] = ()) -> None:
    (shell.folder / "train.py").write_text(SCRIPT)
    shell.hpc(*words, "train.py", *ON_CPUS, *keys, timeout_s=300)
    status = shell.status("train")
    assert status["state"] == "completed"
    (note,) = (it for it in status["attempts"][0]["notes"] if "its ranks meet" in it)
    assert note.startswith("the script sets MASTER_ADDR=localhost and MASTER_PORT=")
    assert "(train.py:9); its ranks meet where they were started: " in note
    logs = shell.hpc("logs", "train", "--all").stdout
    assert [f"rank {it} of {ranks}" in logs for it in range(ranks)] == [True] * ranks


@pytest.mark.parametrize("ranks", [1, 3])
def test_on_this_machine(here: Shell, ranks: int) -> None:
    """All waited for half an hour, and nothing was said."""
    trains(here, "run", "--gpus", ranks, ranks=ranks)


@pytest.mark.slurm
@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_on_nodes_of_a_cluster(site: Shell, launcher: str) -> None:
    shape = ("--nodes", 2, "--gpus", 2, "--wait")
    trains(site, "submit", *shape, ranks=4, keys=[f"script.launcher={launcher}"])
