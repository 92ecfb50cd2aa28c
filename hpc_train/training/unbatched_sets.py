"""A data set that a hook gave in a loader's place, told at what the step makes of its samples.

Lightning takes whatever can be indexed for a loader of the validation, and hands on each sample
alone (trainer/connectors/data_connector.py, `_check_dataloader_iterable`).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from hpc_train.training.frame_text import shown_class, shown_file
from hpc_train.training.layers import owners
from hpc_train.training.users_method import own_method

# Steps that are given each sample of a set in a batch's place, and the hook of their data.
_HOOKS = {
    "validation_step": "val_dataloader",
    "test_step": "test_dataloader",
    "predict_step": "predict_dataloader",
}
_OF_VALUES = (IndexError, TypeError, ValueError, RuntimeError)  # what a sample for a batch leads to


def unbatched_set(error: BaseException) -> str:
    """Whose hook gave it, and what to write; empty where the step's loaders are loaders."""
    if not isinstance(error, _OF_VALUES):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    steps = [it.f_code.co_name for it in frames if it.f_code.co_name in _HOOKS]
    for owner in owners(frames) if steps else ():
        hook = _HOOKS[steps[-1]]
        held = getattr(owner, "__dict__", {})
        trainer = held.get("_trainer") or held.get("trainer")
        given = [*_flat(getattr(trainer, f"{hook}s", None))]
        sets = [it for it in given if _is_set(it)]
        if not sets or len(sets) < len(given):
            continue
        data = getattr(trainer, "datamodule", None)
        maker = data if own_method(data, hook) is not None else owner
        where = hook_gives(maker, hook) or f"the data of {steps[-1]} are"
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


def _is_set(loader: object) -> bool:
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
