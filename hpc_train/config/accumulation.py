"""`accumulate_grad_batches` of Lightning's Trainer, as the batch sizes that it follows from."""

from __future__ import annotations

from typing import Any

from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.schema import Config


def accumulation_hint(asked: Any, config: Config, origins: Origins) -> str:
    """What to write for it.

    The global batch is what one step is made of, over all ranks: either it is what was written, and
    the micro batch is a part of it, or what was written is a rank's batch, and it is larger.

    Args:
        asked: Its value.
        config: With the batch and the shape.
        origins: Of its values.
    """
    batch, ranks = config.global_batch_size, config.slurm.nodes * config.slurm.gpus_per_node
    is_known = origins.of("global_batch_size") != DEFAULT and batch > 0 and ranks > 0
    if not isinstance(asked, int) or asked < 2 or not is_known:
        return "leave it out: it follows from global_batch_size and micro_batch_size"
    sign = "=" if origins.is_typed("trainer.accumulate_grad_batches") else ": "
    on = f"{asked} x {ranks} rank{'s' if ranks > 1 else ''}"
    whole = f"global_batch_size{sign}{batch * asked * ranks}"
    both = f"{whole} with micro_batch_size{sign}{batch}, where {batch} was one rank's batch"
    micro, rest = divmod(batch, asked * ranks)
    if rest:
        return f"leave it out: {both} ({batch} x {on})"
    written = f"micro_batch_size{sign}{micro}"
    return f"leave it out and write {written} ({batch} = {micro} x {on}); or {both}"
