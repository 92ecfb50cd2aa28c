"""Ranks as threads of one process, with a gloo group among them: milliseconds, and no launcher."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import torch.distributed as dist

T = TypeVar("T")


def as_ranks(world_size: int, be: Callable[[int, dist.ProcessGroup], T]) -> list[T]:
    """What `be(rank, group)` returns on each rank; raises what the first of them raises."""
    store = dist.HashStore()

    def thread(rank: int) -> T:
        return be(rank, dist.ProcessGroupGloo(store, rank, world_size, timedelta(seconds=30)))

    with warnings.catch_warnings(), ThreadPoolExecutor(world_size) as pool:
        warnings.filterwarnings("ignore", message="You are using a Backend")
        futures = [pool.submit(thread, rank) for rank in range(world_size)]
        return [future.result() for future in futures]
