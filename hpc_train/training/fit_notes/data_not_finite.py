"""Whether a training that has become NaN was given NaN: its batch, and what its data set holds.

It is asked once a loss or a weight is known to be NaN, never in a step of a healthy training.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch

from hpc_train.training.fit_notes.parts_of_sets import HeldSet, parts_of

_MOST_VALUES = 100_000_000  # of one tensor; they are read once
_MOST_TENSORS = 64
_DEPTH = 4
LOOK = "it is the data: take such samples out, or give these values a number"


def not_finite_in_data() -> str:
    """`the train set holds NaN itself (x, 1 of 2048 values)`; empty where nothing was found.

    The batch is that of the fit which this is called within.
    """
    frame: FrameType | None = inspect.currentframe()
    trainer: Any = None
    batch: Any = None
    while frame is not None:
        names = frame.f_locals
        if batch is None and frame.f_code.co_name == "advance":
            batch = names.get("batch")
        trainer = trainer or _trainer(names.get("trainer")) or _trainer(names.get("self"))
        frame = frame.f_back
    if found := _first("batch", batch):
        return f"the batch holds {found}"
    dataset = getattr(getattr(trainer, "train_dataloader", None), "dataset", None)
    for part in parts_of(dataset):
        for name, value in getattr(part.dataset, "__dict__", {}).items():
            if found := _first(f"{part.place}{name}", value, part):
                return f"the train set, a {type(dataset).__name__}, holds {found}"
    return ""


def _trainer(value: Any) -> Any:
    return value if hasattr(value, "fit_loop") and hasattr(value, "global_step") else None


def _first(name: str, value: Any, part: HeldSet | None = None) -> str:
    """`NaN itself (batch[0], 1 of 256 values)` of the first tensor that has it."""
    try:
        return _found(name, value, part)
    except (RuntimeError, TypeError, ValueError):  # of a kind that cannot be looked at: no reason
        return ""  # to end what may train well


def _found(name: str, value: Any, part: HeldSet | None) -> str:
    for number, (place, tensor) in enumerate(_tensors(name, value, _DEPTH)):
        if number >= _MOST_TENSORS:
            break
        tensor = part.taken(tensor) if part is not None else tensor
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
            what = "NaN" if bool(torch.isnan(tensor).any()) else "infinite values"
            return f"{what} itself ({place}, {bad} of {tensor.numel()} values)"
    return ""


def _tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Those of floating-point numbers, by what a program calls them."""
    kind = type(value)
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy" and value.dtype.kind == "f":
        value = torch.from_numpy(value)
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() and 0 < value.numel() <= _MOST_VALUES and not value.is_meta:
            yield name, value.detach()
    elif isinstance(value, Mapping) and depth:
        for key, item in [*value.items()][:_MOST_TENSORS]:
            yield from _tensors(f"{name}[{key!r}]", item, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for place, item in enumerate(value[:_MOST_TENSORS]):
            yield from _tensors(f"{name}[{place}]", item, depth - 1)
