"""The Trainer, or its logger, in the `__init__` of a model or data, which has neither yet.

`LightningModule.logger` is None until a Trainer has the module, and `.trainer` is refused
(pytorch_lightning/core/module.py); a LightningDataModule's `trainer` is None (core/datamodule.py).
"""

from __future__ import annotations

import ast
import re
import traceback

from hpc_train.config.fit.early_asks import LATER
from hpc_train.training.failures.frame_values import failing_line

_NONE = re.compile(r"'NoneType' object (?:has no attribute '|is not (?:subscriptable|iterable))")
_NOT_ATTACHED = re.compile(r"\w+ is not attached to a `Trainer`")
_OF_A_TRAINER = ("logger", "loggers", "trainer")
_OWNERS = ("LightningModule", "LightningDataModule")
# Before configure_optimizers, where it is asked for as a rule.
_FIX = f"use it from {LATER} on"


def early_trainer(error: BaseException) -> str:
    """What is not there yet, and where it is; empty where the error is of something else."""
    said = str(error)
    if not (_NONE.match(said) or _NOT_ATTACHED.search(said)):
        return ""
    makes = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "__init__" and "self" in frame.f_locals
    ]
    for frame in makes:
        kinds = {it.__name__ for it in type(frame.f_locals["self"]).__mro__}
        is_owner = any(it in kinds for it in _OWNERS)
        name = "trainer" if _NOT_ATTACHED.search(said) else _asked(error)
        if is_owner and name:
            return f"self.{name} is not there in __init__: {_FIX}"
    return ""


def _asked(error: BaseException) -> str:
    """The `logger` of a failed line's `self.logger.name`; empty where it asks for none."""
    _, nodes = failing_line(error) or (None, [])
    owners = [it.value for it in nodes if isinstance(it, ast.Attribute | ast.Subscript)]
    names = [ast.unparse(it).removeprefix("self.") for it in owners]
    return next((it for it in names if it in _OF_A_TRAINER), "")
