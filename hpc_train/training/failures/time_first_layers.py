"""A recurrent layer that takes the samples of a batch for time steps, by the shapes of a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.users_method import lines_of, own_method

_RECURRENT = ("LSTM", "GRU", "RNN")


def time_first(owner: Any, rows: int, labels: int, given: list[tuple[int, ...]]) -> str:
    """What to write; empty where no layer of the model's explains the rows.

    Args:
        owner: The model.
        rows: Of the logits.
        labels: How many there are.
        given: Shapes of the tensors of the batch.
    """
    if (labels, rows) not in [it[:2] for it in given]:
        return ""
    named: Callable[[], Iterable[tuple[str, Any]]] = getattr(owner, "named_modules", tuple)
    found = [
        (f"self.{name}", type(it).__name__)
        for name, it in named()
        if type(it).__name__ in _RECURRENT and getattr(it, "batch_first", True) is False
    ]
    if len(found) != 1:
        return ""
    name, kind = found[0]
    place = _place(owner, name)
    return (
        f"{name} takes [time, batch, features], and is given [{labels}, {rows}, ...]: write"
        f" batch_first=True in its {kind}(...){place}, and out[:, -1] for the last time step"
    )


def _place(owner: Any, name: str) -> str:
    """` (net.py:12)`: the line that makes it."""
    method = own_method(owner, "__init__")
    lines, first = lines_of(method) if method else ([], 0)
    numbered = enumerate(lines, first)
    made = [number for number, line in numbered if line.strip().startswith(f"{name} =")]
    return f" ({shown_file(method.__code__.co_filename)}:{made[0]})" if len(made) == 1 else ""
