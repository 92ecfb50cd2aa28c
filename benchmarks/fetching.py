"""What seeding by sample costs where the set has `__getitems__`, beside a plain DataLoader.

    python -m benchmarks fetching

Samples are as cheap as can be, so that nothing hides the cost; epochs are read in turn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks.places import Places
from benchmarks.rows import Row

SAMPLES, BATCH = 4096, 32
PAIRS = int(os.environ.get("HPC_TRAIN_BENCH_PAIRS", "5"))


def rows(_: Places) -> Iterator[Row]:
    """In this process: without data workers, so that nothing overlaps."""
    for what, kind in (("draws nothing", 0), ("draws for all at once", 1), ("__getitem__", 2)):
        pairs = _pairs(kind)
        ours, plain = median(a for a, _ in pairs), median(b for _, b in pairs)
        yield Row(
            what=f"a sample, {what} : plain DataLoader",
            ours=f"{1e6 * ours / SAMPLES:.1f} us",
            peer=f"{1e6 * plain / SAMPLES:.1f} us",
            ratio=f"{median(a / b for a, b in pairs):.2f}",
        )


def _pairs(kind: int) -> list[tuple[float, float]]:
    import torch
    from torch.utils.data import DataLoader, Dataset

    from hpc_train.plan.plan import Batch
    from hpc_train.training.resume.sample_order import DataPosition, GlobalBatchSampler
    from hpc_train.training.resume.sampling import map_style_loader

    class Plain(Dataset):  # type: ignore[type-arg]
        data = torch.randn(SAMPLES, 16)

        def __len__(self) -> int:
            return SAMPLES

        def __getitem__(self, index: int) -> Any:
            return self.data[index] + torch.rand(16)

    class Listed(Plain):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            found = self.data[indices]
            return list(found + torch.rand(len(indices), 16) if kind else found)

    loader: Any = DataLoader(Plain() if kind == 2 else Listed(), batch_size=BATCH, shuffle=True)

    def epoch(source: Any) -> float:
        began = time.perf_counter()
        for _ in source:
            pass
        return time.perf_counter() - began

    # Epoch 1: what is said in epoch 0 is left out.
    start, batch = DataPosition(1, 0, 1), Batch(BATCH, BATCH, 1)
    exact = map_style_loader(
        loader,
        GlobalBatchSampler(SAMPLES, batch, rank=0, world_size=1, start=start, shuffle=True),
    )
    return [(epoch(exact), epoch(loader)) for _ in range(PAIRS + 1)][1:]
