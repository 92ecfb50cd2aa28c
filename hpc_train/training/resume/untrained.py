"""A fit that learns nothing to its end: no loss comes, for which Lightning warns once, or no step.

Imports no torch: whoever judges a rank's end reads it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from hpc_train.config.python_text.method_signatures import manual_without_step
from hpc_train.errors import RunFailedError
from hpc_train.training.failures.collate_errors import gives_no_batch
from hpc_train.training.resume.unsavable import class_name

# A note, where the text of the model does not say whether it may be meant.
NO_STEP = (
    "{batches} batches and no optimizer step: with automatic_optimization = False training_step"
    " steps the optimizers that it has from self.optimizers()"
)


class UntrainedError(RunFailedError):
    """An epoch is over, and nothing was learned in it.

    Attributes:
        where: `file:line` of the method; empty where nobody can tell.
    """

    def __init__(self, module: Any, said: str, hint: str) -> None:
        super().__init__(said, hint)
        step: Any = inspect.unwrap(type(module).training_step)
        code = getattr(step, "__code__", None)
        self.where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def no_loss(module: Any, loaders: object = None) -> UntrainedError:
    """Where each step of an epoch gave None, or was not called, as each batch was None.

    Args:
        loaders: What the Trainer takes its training batches from.
    """
    if (wrong := gives_no_batch(loaders)).fix:
        said, _, hint = wrong.fix.partition(": ")
        error = UntrainedError(
            module, f"each batch was None, and nothing was trained: {said}", hint
        )
        error.where = wrong.where
        return error
    return UntrainedError(
        module,
        f"training_step of {class_name(type(module))} returned None at every step: "
        "no optimizer step has trained anything",
        "write `return loss` at its end, or self.automatic_optimization = False in __init__"
        " where it optimizes by hand",
    )


def no_step(module: Any, batches: int) -> UntrainedError | None:
    """Where a model that optimizes by hand has taken no step; None where its text may take one."""
    try:
        text = textwrap.dedent(inspect.getsource(type(module)))
        (definition,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):  # made in a notebook or by a library
        return None
    if not isinstance(definition, ast.ClassDef) or not manual_without_step(definition)[0]:
        return None
    return UntrainedError(
        module,
        f"{batches} batches and no optimizer step: {class_name(type(module))} sets"
        " automatic_optimization = False, and its training_step steps no optimizer",
        "leave that line out, or write opt = self.optimizers(); opt.zero_grad();"
        " self.manual_backward(loss); opt.step()",
    )
