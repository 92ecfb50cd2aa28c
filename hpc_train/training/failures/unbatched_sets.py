"""A data set that a hook gave in a loader's place, told at what the step makes of its samples.

Lightning takes whatever can be indexed for a loader of the validation, and hands on each sample
alone (trainer/connectors/data_connector.py, `_check_dataloader_iterable`).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from hpc_train.training.failures.frame_text import shown_class, shown_file
from hpc_train.training.failures.step_data import LOADERS, loaders_of_step
from hpc_train.training.failures.users_method import own_method

_OF_VALUES = (IndexError, TypeError, ValueError, RuntimeError)  # what a sample for a batch leads to


def unbatched_set(error: BaseException) -> str:
    """Whose hook gave it, and what to write; empty where the step's loaders are loaders."""
    if not isinstance(error, _OF_VALUES):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for step, owner, trainer, loaders in loaders_of_step(frames):
        given = [*_flat(loaders)]
        sets = [it for it in given if is_set(it)]
        if not sets or len(sets) < len(given):
            continue
        hook = LOADERS[step].removesuffix("s")
        data = getattr(trainer, "datamodule", None)
        maker = data if own_method(data, hook) is not None else owner
        where = hook_gives(maker, hook) or f"the data of {step} are"
        name = type(sets[0]).__name__
        return (
            f"{where} a {name}, a data set without batches: write DataLoader({name}(...),"
            " batch_size=32)"
        )
    return ""


def hook_gives(maker: object, hook: str) -> str:
    """`nets.Data.train_dataloader (nets.py:43) gives`; empty without such a method."""
    code = getattr(own_method(maker, hook), "__code__", None)
    if code is None:
        return ""
    place = f"{shown_file(code.co_filename)}:{code.co_firstlineno}"
    return f"{shown_class(type(maker))}.{hook} ({place}) gives"


def is_set(loader: object) -> bool:
    """Whether it is a map-style Dataset of torch's, which need not be in memory."""
    kinds = {f"{it.__module__}.{it.__name__}" for it in type(loader).__mro__}
    return "torch.utils.data.dataset.Dataset" in kinds and not hasattr(loader, "__iter__")


def _flat(loaders: Any) -> Iterator[Any]:
    """A loader, or each of a list or a dict of them."""
    inner = [*loaders.values()] if isinstance(loaders, dict) else loaders
    if not isinstance(inner, list | tuple):
        yield loaders
        return
    for it in inner:
        yield from _flat(it)
