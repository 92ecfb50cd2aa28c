"""How many collectives this process has taken part in, as torch counts them itself."""

from __future__ import annotations

from typing import Any

import torch.distributed.distributed_c10d


def exchanges_so_far() -> int | None:
    """Over all process groups, those of DistributedDataParallel too; None where it is not told.

    Each backend numbers its collectives, a barrier as well (ProcessGroupGloo.hpp,
    ProcessGroupNCCL.hpp: getSequenceNumberForGroup); sends and receives are not counted.
    """
    c10d: Any = torch.distributed.distributed_c10d
    try:
        groups = list(c10d._world.pg_map)
        backends = [group._get_backend(it) for group in groups for it in group._device_types]
        own = {id(it): it for it in backends}  # one may serve CPUs and GPUs
        return sum(int(it._get_sequence_number_for_group()) for it in own.values())
    except (AttributeError, RuntimeError, TypeError):
        return None  # a backend that does not count, or another torch
