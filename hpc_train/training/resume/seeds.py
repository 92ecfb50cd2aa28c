"""One seed for every library, and the one choice between reproducible and fast."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed python, numpy, torch on the CPU and on all GPUs of this process with the same number."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)  # the GPUs too, and lazily: no CUDA context is made here


def seed_of_rank(seed: int, rank: int) -> int:
    """A seed (32 bits) for what shall differ between ranks, as dropout does.

    A hash and not a sum: with seed + rank, rank 1 of seed 0 would draw what rank 0 of seed 1 does.
    """
    digest = hashlib.sha256(f"{seed}/{rank}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def choose_determinism(*, reproducible: bool) -> dict[str, bool | str]:
    """Trainer arguments for `reproducible`: both switches move together.

    `deterministic` alone leaves cuDNN free to time algorithms and pick another one on the next
    node (https://pytorch.org/docs/stable/notes/randomness.html); "warn" and not True, since some
    layers have no deterministic form on a GPU and a training should not stop for that.
    """
    if reproducible:
        return {"deterministic": "warn", "benchmark": False}
    return {"deterministic": False, "benchmark": True}
