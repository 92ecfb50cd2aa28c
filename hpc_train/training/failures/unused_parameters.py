"""Parameters that took no part in the loss, by name, once DistributedDataParallel has said so.

Imports no torch: whoever judges a rank's end reads it.
"""

from __future__ import annotations

import importlib
import re
import traceback
from typing import Any

from hpc_train.plan.states import SUBMIT_AGAIN

_SAID = re.compile(
    r"parameters that were not used in producing the loss"
    r"|Expected to have finished reduction in the prior iteration"
)
# torch/csrc/distributed/c10d/reducer.cpp counts those that were trained as it was made.
_INDICES = re.compile(r"indices which did not receive grad for rank \d+: ([\d ]+)")
_MOST = 6


def fix_of_unused(error: BaseException, *, of_config: bool) -> str:
    """Which they are and what to write; empty where the error is of something else.

    Args:
        of_config: Whether a key of the config decides the strategy.
    """
    if not isinstance(error, RuntimeError) or not _SAID.search(str(error)):
        return ""
    names, are_frozen = _unused(error)
    if not names:
        return ""
    shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" * (len(names) > _MOST))
    flag = (
        f"{SUBMIT_AGAIN} trainer.strategy=ddp_find_unused_parameters_true"
        if of_config
        else "write find_unused_parameters=True of DistributedDataParallel"
        ' (strategy="ddp_find_unused_parameters_true" of a Trainer)'
    )
    if are_frozen:
        since = "since DistributedDataParallel was made (by a callback?)"
        why = f"no gradient came to {shown}, whose requires_grad was turned off {since}"
        return f"{why}: {flag}; or freeze them in the model's __init__"
    return f"no gradient came to {shown}: use them in the loss, delete them, or {flag}"


def _unused(error: BaseException) -> tuple[list[str], bool]:
    """By torch's own numbers, else those that have no gradient: no step has cleared the others.

    Returns:
        And whether they were frozen since the reducer was made, which waits for them all the same.
    """
    if (wrapped := _wrapped(error)) is None:
        return [], False
    # Not by an import: the command line reads this file, and torch is loaded where there is one.
    torch_ddp: Any = importlib.import_module("hpc_train.training.private.torch_ddp")
    named, reduced = torch_ddp.named_parameters(wrapped), torch_ddp.reduced_names(wrapped)
    if found := _INDICES.search(str(error)):
        told = [int(number) for number in found[1].split()]
        names = [reduced[number] for number in told if number < len(reduced)]
    else:
        names = [name for name in reduced if named[name].grad is None]
        names = names if len(names) < len(reduced) else []
    return names, not any(named[name].requires_grad for name in names)


def _wrapped(error: BaseException) -> Any:
    """The DistributedDataParallel among what the frames of the error hold."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if type(value).__name__ == "DistributedDataParallel":
                return value
    return None
