"""What Lightning refuses of what a method of the user's returned: whose method, and where it is.

It raises outside of the user's frames, so that no frame names the method.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import traceback
from collections.abc import Sequence
from typing import Any

from hpc_train.training.private.lightning_frames import in_optimizer_setup
from hpc_train.training.private.versions import LIGHTNING_PACKAGES

_PACKAGES = tuple(name.partition(".")[0] for name in LIGHTNING_PACKAGES)
# What Lightning says, and the method that returned it.
_RETURNED = (
    (
        "ReduceLROnPlateau|model optimizers|lr scheduler|multiple optimizers|Some schedulers",
        "configure_optimizers",
    ),
    (r"automatic.optimization, (?:when )?`training_step`|In manual optimization", "training_step"),
    (r"Skipping the `training_step` by returning None", "training_step"),
    (r"gradient (?:clipping|accumulation) is not supported for manual", "training_step"),
    (r"dataloader was returned from `\w+\.(?P<hook>\w+)\(\)`", ""),
    (r"`(?P<hook>\w+_dataloader)` must be implemented", ""),
)
OWNERS = ("model", "datamodule", "pl_module", "lightning_module")


def method_that_returned(error: BaseException) -> str:
    """`file:line` of its def; empty where the error is of something else."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or _package(frames[-1].f_globals.get("__name__", "")) not in _PACKAGES:
        return ""
    hook = _hook(str(error))
    file = frames[-1].f_code.co_filename
    codes = [frame.f_code for frame in frames if frame.f_code.co_filename == file]
    if any(in_optimizer_setup(it.co_name) for it in codes):
        hook = hook or "configure_optimizers"  # as of a dict without "optimizer": a KeyError
    owners = [frame.f_locals.get(name) for frame in frames for name in OWNERS]
    return next(filter(None, (_place(owner, hook) for owner in owners)), "") if hook else ""


def _hook(said: str) -> str:
    for pattern, hook in _RETURNED:
        if found := re.search(pattern, said):
            return hook or found["hook"]
    return ""


def _package(module: str) -> str:
    return module.partition(".")[0]


def _place(owner: Any, hook: str) -> str:
    code = getattr(own_method(owner, hook), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def own_method(owner: Any, name: str) -> Any:
    """The method that an object's class has by that name; None where it is Lightning's, or none."""
    for kind in type(owner).__mro__:
        if name in kind.__dict__:
            is_lightnings = _package(kind.__module__) in _PACKAGES
            return None if is_lightnings else inspect.unwrap(kind.__dict__[name])
    return None


def lines_of(method: Any) -> tuple[list[str], int]:
    """Of a method: its lines, and the number of the first; none where its text is not there."""
    try:
        return inspect.getsourcelines(method)
    except (OSError, TypeError):
        return [], 0


def parsed(lines: Sequence[str]) -> ast.FunctionDef | None:
    """The def of a method's lines."""
    try:
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (SyntaxError, IndexError):  # of a file that has changed
        return None
    return node if isinstance(node, ast.FunctionDef) else None


def class_text(lines: Sequence[str], first: int) -> ast.ClassDef | None:
    """The class of its lines, each node of it with its line in the file."""
    try:
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (SyntaxError, IndexError):  # of a file that has changed
        return None
    return ast.increment_lineno(node, first - 1) if isinstance(node, ast.ClassDef) else None
