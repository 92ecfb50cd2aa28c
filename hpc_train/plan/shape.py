"""The shape of a run, and how a global batch is split over it, exactly or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.config.schema import Config
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Batch, Shape

SHOWN = 3  # shapes that a refusal names
_CPU = "cpu"


class BatchSplitError(CheckError):
    """The ranks cannot share the batch evenly.

    Attributes:
        sizes: The batches nearest in size that they can share, in words; empty where none help.
        candidates: Nodes and ranks a node of the shapes that can, the nearest first.
    """

    def __init__(self, message: str, sizes: str, candidates: Sequence[tuple[int, int]]) -> None:
        self.sizes = sizes
        self.candidates = tuple(candidates)
        super().__init__(message, "; ".join(filter(None, (sizes, self.shapes))))

    @property
    def shapes(self) -> str:
        """The nearest few shapes in words; empty where there is none."""
        shown = [f"--nodes {nodes} --gpus {ranks}" for nodes, ranks in self.candidates[:SHOWN]]
        return f"nearest shapes: {' or '.join(shown)}" if shown else ""


def shape_of(config: Config) -> Shape:
    """The ranks that the config asks for: one a GPU, or one a slot on `accelerator: cpu`."""
    slurm = config.slurm
    on_cpu = _CPU in (config.trainer.get("accelerator"), config.script.accelerator)
    return Shape(
        nodes=slurm.nodes,
        ranks_per_node=slurm.gpus_per_node,
        gpus_per_node=0 if on_cpu else slurm.gpus_per_node,
        spares=slurm.spares,
    )


def split_batch(global_batch_size: int, micro_batch_size: int | None, shape: Shape) -> Batch:
    """Split so that global = micro * accumulate * world size, with the largest micro allowed.

    Args:
        global_batch_size: Samples an optimizer step, over all ranks; 1 or more.
        micro_batch_size: The most samples a rank takes at once; None = all of its share.
        shape: The ranks.

    Raises:
        BatchSplitError: when the ranks cannot share the batch evenly, with the nearest that can.
    """
    world = shape.world_size
    share, rest = divmod(global_batch_size, world)
    if rest:
        raise BatchSplitError(
            f"global_batch_size {global_batch_size} cannot be split over {world} ranks"
            f" ({_shape_text(shape.nodes, shape.ranks_per_node)})",
            _nearest_sizes(global_batch_size, shape),
            _dividing_shapes(global_batch_size, shape),
        )
    limit = min(share, micro_batch_size or share)
    micro = next(size for size in range(limit, 0, -1) if share % size == 0)
    return Batch(global_batch_size, micro, share // micro)


def _shape_text(nodes: int, ranks_per_node: int) -> str:
    return f"{nodes} node{'s' if nodes > 1 else ''} x {ranks_per_node}"


def _nearest_sizes(batch: int, shape: Shape) -> str:
    world = shape.world_size
    below, above = batch // world * world, -(-batch // world) * world
    sizes = " or ".join(str(size) for size in (below, above) if size > 0)
    return f"nearest global_batch_size: {sizes}"


def _dividing_shapes(batch: int, shape: Shape) -> list[tuple[int, int]]:
    """Shapes that divide the batch, the ones nearest in ranks, then in nodes, first."""
    every = [
        (nodes, ranks)
        for nodes in range(1, 2 * shape.nodes + 1)
        for ranks in range(1, 2 * shape.ranks_per_node + 1)
        if batch % (nodes * ranks) == 0
    ]
    # One of the two numbers stays as it is, where that leaves more than a single rank.
    kept = [it for it in every if it[0] == shape.nodes or it[1] == shape.ranks_per_node]
    candidates = [*kept, (1, 1)] if kept and (1, 1) not in kept else kept or every
    return sorted(
        candidates,
        key=lambda pair: (abs(pair[0] * pair[1] - shape.world_size), abs(pair[0] - shape.nodes)),
    )
