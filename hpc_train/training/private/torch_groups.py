"""Process groups whose last reference is not dropped while one of their threads needs the GIL.

A backward pass keeps a Python object in torch's thread-local state (torch/autograd/graph.py,
`_engine_run_backward`), of which each all-reduce of DistributedDataParallel takes a copy. gloo's
thread drops that copy after the all-reduce, for which it needs the GIL. The destructor of the group
joins that thread, and where Python runs it (a DDP that a function leaves behind after
`destroy_process_group()`) it holds the GIL meanwhile: neither goes on, nor does any thread of
Python (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp).
"""

from __future__ import annotations

import functools
from collections import deque
from typing import Any

import torch.distributed
from torch.distributed import distributed_c10d

# So many groups that were destroyed last: all-reduces of older ones are long over. A rank leaves
# by os._exit, which runs no destructor.
_KEPT = 16
_kept: deque[Any] = deque(maxlen=_KEPT)


def keep_groups() -> None:
    """From now on a group that is destroyed stays in memory until more have followed it."""
    real = distributed_c10d.destroy_process_group
    if hasattr(real, "keeps"):  # a second time
        return

    @functools.wraps(real)
    def destroy(*given: Any, **named: Any) -> Any:
        world: Any = distributed_c10d._world
        _kept.extend(group for group in world.pg_map if not any(group is it for it in _kept))
        return real(*given, **named)

    destroy.keeps = True  # type: ignore[attr-defined]
    distributed_c10d.destroy_process_group = destroy
    torch.distributed.destroy_process_group = destroy
