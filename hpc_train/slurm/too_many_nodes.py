"""The refusal of more nodes than a partition gives a job, with a shape that can be had."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.errors import SlurmError
from hpc_train.plan.plan import Plan


def too_many_nodes(
    nodes: int, most: Mapping[str, int], shown: str, plan: Plan | None
) -> SlurmError:
    """What is asked for and what there is.

    Args:
        nodes: Of the job, with its spares.
        most: Of a job in each partition that it may be in.
        shown: That as text.
        plan: Of a training, whose batch is to be split over the nodes that are named.
    """
    spares = plan.shape.spares if plan else 0
    limit = max(most.values())
    fewer = f"write --nodes {limit} or fewer{', --spares too' if spares else ''}"
    nearest = _that_splits(limit - spares, plan) if plan else limit
    if plan and 0 < nearest < limit - spares:
        size = plan.batch.global_batch_size
        fewer = f"write --nodes {nearest}: global_batch_size {size} cannot be split over more there"
    among = " (slurm.spares among them)" if spares else ""
    return SlurmError(
        f"slurm.nodes{among} is {nodes}, more than the partition gives a job ({shown}), so the job"
        " would never start",
        f"{fewer}, or another slurm.partition (`sinfo -s` lists them)",
    )


def _that_splits(limit: int, plan: Plan) -> int:
    """The most nodes over whose ranks the batch can be split; 0 where none are."""
    size, ranks = plan.batch.global_batch_size, plan.shape.ranks_per_node
    return next((it for it in range(limit, 0, -1) if size % (it * ranks) == 0), 0)
