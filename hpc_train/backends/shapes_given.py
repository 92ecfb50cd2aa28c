"""A batch that the shape cannot split, where Slurm is: the shapes named are those it gives."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hpc_train.backends.submit import detect_cluster
from hpc_train.config.schema import Config
from hpc_train.errors import ConfigError, SlurmError
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.shape import SHOWN, BatchSplitError
from hpc_train.slurm.partitions import ask_what_is_given


@contextlib.contextmanager
def shapes_of_slurm(config: Config, cluster: str | None) -> Iterator[None]:
    """Where the block refuses a batch, of the shapes that could split it name those to be had.

    Args:
        config: With the shape that was asked for.
        cluster: `slurm` or `local`; None finds it out, once a batch is refused.
    """
    try:
        yield
    except BatchSplitError as error:
        if config.hosts or (cluster or detect_cluster()) != "slurm":
            raise
        try:
            why_not = ask_what_is_given()
        except SlurmError:  # without an answer nothing is known of the partition
            raise error from None
        raise _given(error, config, why_not) from error


def _given(
    error: BatchSplitError, config: Config, why_not: Callable[[Mapping[str, str | None]], str]
) -> BatchSplitError:
    asked = why_not(_options(config, config.slurm.nodes, config.slurm.gpus_per_node))
    shapes = list(
        itertools.islice((it for it in error.candidates if _is_given(config, it, why_not)), SHOWN)
    )
    # Where this shape is not to be had, no size of the batch would help.
    message = f"{error.message}, and {asked}" if asked else error.message
    return BatchSplitError(message, "" if asked else error.sizes, shapes)


def _is_given(
    config: Config,
    candidate: tuple[int, int],
    why_not: Callable[[Mapping[str, str | None]], str],
) -> bool:
    try:
        return not why_not(_options(config, *candidate))
    except ConfigError:  # such as a nodelist of more nodes
        return False


def _options(config: Config, nodes: int, ranks: int) -> Mapping[str, str | None]:
    """Sbatch's options of the job in this shape, with a batch that it can split."""
    slurm = dataclasses.replace(config.slurm, nodes=nodes, gpus_per_node=ranks)
    other = dataclasses.replace(config, slurm=slurm, global_batch_size=nodes * ranks)
    return dict(make_plan(other, workdir=Path("/"), python="python").slurm.options)
