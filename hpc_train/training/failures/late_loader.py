"""The Trainer's train_dataloader, where a hook asks for it before the fit has its loaders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hpc_train.config.fit.late_loaders import LOADER, fix_of_loader, takers, written_in
from hpc_train.training.failures.frame_text import nodes_of
from hpc_train.training.failures.frame_values import failing_line

_SAID = re.compile(
    r"object of type 'NoneType' has no len\(\)|'NoneType' object (?:has no attribute '"
    r"|is not (?:subscriptable|callable|iterable|an iterator))"
)


def late_loader(error: BaseException) -> str:
    """Why it is None, and what to write; empty where the error is of something else."""
    if not isinstance(error, TypeError | AttributeError) or not _SAID.match(str(error)):
        return ""
    frame, nodes = failing_line(error) or (None, [])
    if frame is None:
        return ""
    for name, trainer in _trainers(frame):
        method = next(nodes_of(frame), None)
        lines = {
            getattr(it, "lineno", 0) for it in nodes if isinstance(it, ast.Call | ast.Attribute)
        }
        there = (
            [it for it in ast.walk(method) if getattr(it, "lineno", 0) in lines] if method else []
        )
        asked = next(takers(there, written_in(method, name)), None) if method else None
        if method is None or asked is None or getattr(trainer, LOADER, None) is not None:
            continue
        epochs = getattr(trainer, "max_epochs", None)
        has_data = getattr(trainer, "datamodule", None) is not None
        is_len = isinstance(asked, ast.Call) and ast.unparse(asked.func) == "len"
        why = f"{name}.{LOADER} is None in {frame.f_code.co_name}, and there from on_train_start on"
        if not has_data and not is_len:
            return why
        has_epochs = type(epochs) is int and epochs > 0
        return f"{why}: {fix_of_loader(method, asked, has_epochs=has_epochs, trainer=name)}"
    return ""


def _trainers(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The Trainer of Lightning's that a hook is given, or that its module has."""
    held = getattr(frame.f_locals.get("self"), "__dict__", {})
    there = {"trainer": frame.f_locals.get("trainer")}
    there["self.trainer"] = held.get("_trainer") or held.get("trainer")
    for name, it in there.items():
        homes = ("pytorch_lightning.", "lightning.")
        if any(kind.__module__.startswith(homes) for kind in type(it).__mro__):
            yield name, it
