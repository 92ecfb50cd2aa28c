"""A rank that is killed leaves no process behind, also where no step of Slurm's ends them."""

from __future__ import annotations

import time
from pathlib import Path

from tests.e2e.conftest import Shell

SCRIPT = """\
import multiprocessing
import os
import time
import torch
from pathlib import Path

if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=time.sleep, args=(600,)) for _ in range(2)]
    for it in workers:
        it.start()
    rank, attempt = os.environ["RANK"], os.environ["HPC_TRAIN_ATTEMPT"]
    Path(f"pids-{attempt}-{rank}").write_text(" ".join(str(it.pid) for it in workers))
    torch.distributed.init_process_group("gloo")
    layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(6):
        optimizer.zero_grad()
        layer(torch.ones(4, 2)).mean().backward()
        optimizer.step()
    for it in workers:
        it.terminate()
"""


def alive(folder: Path, attempt: int, rank: int) -> list[str]:
    pids = (folder / f"pids-{attempt}-{rank}").read_text().split()
    assert len(pids) == 2
    return [it for it in pids if Path("/proc", it).exists()]


def test_the_workers_of_a_killed_rank_end_with_it(here: Shell) -> None:
    """They went on, with all that they had of the GPU's and the host's memory."""
    (here.folder / "train.py").write_text(SCRIPT)
    here.environment["HPC_TRAIN_FAULTS"] = "kill@step=3:rank=1:attempt=0"
    here.hpc("run", "--gpus", 2, "train.py", "script.accelerator=cpu", "preflight=off")
    attempts = here.status("train")["attempts"]
    assert [it["outcome"] for it in attempts] == ["node_failure", "completed"]
    deadline = time.monotonic() + 10  # to be taken from the table of processes
    while left := [it for number in (0, 1) for it in alive(here.folder, 0, number)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
