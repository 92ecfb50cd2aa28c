"""Epochs that a number of batches cuts: the batches of a rank, not steps, and not all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.schema import Config
from hpc_train.plan.plan import Batch
from hpc_train.plan.shape import BatchSplitError, shape_of, split_batch

LIMIT = "limit_train_batches"
CUTS = (LIMIT, "overfit_batches")


def cut_notes(config: Config, origins: Origins) -> list[str]:
    """What `cut_note` says of a config."""
    if config.script.path or config.trainer.get("fast_dev_run"):
        return []
    try:
        batch = split_batch(config.global_batch_size, config.micro_batch_size, shape_of(config))
    except BatchSplitError:
        return []  # the plan refuses it
    return cut_note(config.trainer, batch, origins)


def cut_note(trainer: Mapping[str, Any], batch: Batch, origins: Origins = NOWHERE) -> list[str]:
    """A line where an epoch is cut within a step, or to one batch where all may be meant.

    Lightning steps at the end of an epoch with what it has accumulated till then, and takes 1 for
    one batch, and 1.0 for all (`pl.Trainer`, limit_train_batches).
    """
    cuts = ((name, trainer.get(name)) for name in CUTS)
    name, limit = next(((name, it) for name, it in cuts if type(it) is int and it), ("", 0))
    if not name or limit < 1:
        return []
    key = f"trainer.{name}"
    said, fix = cut_steps(limit, batch), "write"
    if said:
        said = f"is {limit}, {said}"
        fix = f"write {' or '.join(map(str, whole_steps(limit, batch)))}"
    if limit == 1 and name == LIMIT:
        said = said or "is 1, a whole number: each epoch has one batch of each rank"
        fix = f"{fix}{', or' * (fix != 'write')} 1.0 for all of the epoch"
    return [f"{origins.prefix(key)}{key} {said}; {fix}"] if fix != "write" else []


def cut_steps(batches: int, batch: Batch) -> str:
    """What an epoch of so many batches of a rank does to its last step; empty where it is whole."""
    rest = batches % (batch.accumulate or 1)
    if not rest:
        return ""
    samples = batch.global_batch_size // batch.accumulate * rest
    which = "the only step" if batches < batch.accumulate else "the last step"
    return (
        f"no multiple of the {batch.accumulate} that are accumulated: {which} of each epoch has"
        f" {samples} of {batch.global_batch_size} samples"
    )


def whole_steps(batches: int, batch: Batch) -> list[int]:
    """The nearest numbers of batches of a rank that are whole steps."""
    below = batches // batch.accumulate * batch.accumulate
    return [it for it in (below, below + batch.accumulate) if it]
