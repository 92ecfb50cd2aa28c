"""One rank of three with gloo and torch's flight recorder on: `recorded.py KIND`.

Each rank leaves its dump where torch would after a time-out with NCCL; with gloo it leaves none
by itself.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def step(numbers: torch.Tensor, *, waits: bool = True) -> None:
    work = dist.all_reduce(numbers, async_op=True)
    if waits:
        work.wait()


def main(kind: str) -> None:
    rank, folder = int(os.environ["RANK"]), Path(os.environ["FOLDER"])
    prefix = os.environ["TORCH_FR_DUMP_TEMP_FILE"]
    dist.init_process_group("gloo", f"file://{folder}/store", world_size=3, rank=rank)
    for _ in range(3):
        step(torch.ones(100, 4))
    if kind == "other" and rank == 1:
        dist.broadcast(torch.ones(7), 1, async_op=True)
    elif kind == "other" or (kind == "absent" and rank != 2):
        step(torch.ones(7), waits=False)
    part = Path(f"{prefix}{rank}.part")
    part.write_bytes(c10d._dump_fr_trace())
    part.rename(f"{prefix}{rank}")
    while not all(Path(f"{prefix}{other}").exists() for other in range(3)):
        time.sleep(0.05)
    os._exit(3 if kind == "absent" else 0)  # without waiting for what does not end


if __name__ == "__main__":
    main(sys.argv[1])
