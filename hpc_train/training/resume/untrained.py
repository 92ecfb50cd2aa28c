"""A fit whose training_step gives no loss: Lightning warns once, and trains nothing to the end.

Imports no torch: whoever judges a rank's end reads it.
"""

from __future__ import annotations

import inspect
from typing import Any

from hpc_train.errors import RunFailedError
from hpc_train.training.resume.unsavable import class_name


class UntrainedError(RunFailedError):
    """An epoch is over, and nothing was learned in it.

    Attributes:
        where: `file:line` of the method; empty where nobody can tell.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(
            f"training_step of {class_name(type(module))} returned None at every step: "
            "no optimizer step has trained anything",
            "write `return loss` at its end, or self.automatic_optimization = False in __init__"
            " where it optimizes by hand",
        )
        step: Any = inspect.unwrap(type(module).training_step)
        code = getattr(step, "__code__", None)
        self.where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
