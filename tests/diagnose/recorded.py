"""One rank of three with gloo and torch's flight recorder on: `recorded.py KIND`.

Each rank leaves its dump where torch would after a time-out with NCCL; with gloo it leaves none
by itself.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def step(numbers: torch.Tensor) -> None:
    dist.all_reduce(numbers)


def main(kind: str) -> None:
    rank, folder = int(os.environ["RANK"]), Path(os.environ["FOLDER"])
    dist.init_process_group(
        "gloo", f"file://{folder}/store", timedelta(seconds=2), world_size=3, rank=rank
    )
    failed = None
    for _ in range(3):
        step(torch.ones(100, 4))
    try:
        if kind == "absent" and rank != 2:
            step(torch.ones(7))
        elif kind == "other" and rank == 1:
            dist.broadcast(torch.ones(7), 1)
        elif kind == "other":
            step(torch.ones(7))
    except RuntimeError as error:
        failed = error
    prefix = os.environ["TORCH_FR_DUMP_TEMP_FILE"]
    Path(f"{prefix}{rank}").write_bytes(c10d._dump_fr_trace())
    if failed and kind == "absent":
        raise failed
    os._exit(0)  # without the rest of the others


if __name__ == "__main__":
    main(sys.argv[1])
