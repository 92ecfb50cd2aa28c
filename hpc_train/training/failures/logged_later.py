"""A metric that a validation reads before the training has logged it: `callback_metrics["loss"]`.

Lightning validates two batches before the first step, its sanity check, and what is logged once an
epoch comes behind the epoch's validation (pytorch_lightning/loops/fit_loop.py).
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from hpc_train.config.words import near_words
from hpc_train.training.failures.frame_text import is_users, nodes_of, shown_file
from hpc_train.training.failures.frame_values import value_of
from hpc_train.training.failures.layers import frames_of
from hpc_train.training.failures.model_logs import ModelLog, logs_of
from hpc_train.training.failures.unlogged_yet import unlogged_yet, what_is_there
from hpc_train.training.private.lightning_frames import in_sanity_check
from hpc_train.training.private.logged_names import logged_names

_METRICS = ("callback_metrics", "logged_metrics")
_NO_TRAINING = ("validation", "on_validation", "test", "on_test", "predict", "on_predict")
_NEAR = 0.85  # as near is a name that is mistyped


def logged_later(error: BaseException) -> str:
    """When it is logged, and where to read it; empty where the error is of something else."""
    frames = frames_of(error)
    if not isinstance(error, KeyError) or not frames or not isinstance(error.args[0], str):
        return ""
    name, frame = error.args[0], frames[-1]
    read = _read(frame)
    trainer = _trainer(read, frame) if read is not None else None
    if read is None or trainer is None or name in (known := logged_names(trainer)):
        return ""
    every = list(logs_of(trainer.lightning_module))
    logs = [it for it in every if not it.method.startswith(_NO_TRAINING)]
    own = next((it for it in logs if name in (it.name, f"{it.name}_step")), None)
    epochs = next((it for it in logs if name == f"{it.name}_epoch"), None)
    if epochs or (own and not own.by_step):
        return _of_epoch(name, epochs or own)
    is_mistyped = bool(near_words(name, sorted(known), cutoff=_NEAR))
    in_check = any(in_sanity_check(it.f_code.co_name) for it in frames)
    if not in_check:
        written = ast.unparse(read)
        told = unlogged_yet(name, every, trainer, written, frame)
        return told or ("" if is_mistyped else what_is_there(name, trainer, written, frame))
    if own is None and is_mistyped:
        return ""
    if own is None and all(it.name for it in logs):
        return ""
    where = f"is logged in {own.method} ({own.place})" if own else "is not logged by then"
    said = f"{name} {where}, and this validation is the sanity check before the training"
    return f"{said}: {_without_check(ast.unparse(read), frame)}"


def _of_epoch(name: str, log: ModelLog | None) -> str:
    where = f"{log.method} ({log.place})" if log else ""
    later = "has its value when the training epoch ends, behind the validation"
    return f"{name} of {where} {later}: read it in on_train_epoch_end"


def _without_check(trainer: str, frame: FrameType) -> str:
    code = frame.f_code
    if not code.co_name.startswith("on_validation"):
        return f"read it only where {trainer}.sanity_checking is False"
    place = f"{code.co_name} ({shown_file(code.co_filename)}:{code.co_firstlineno})"
    return f"write if {trainer}.sanity_checking: return as the first line of {place}"


def _read(frame: FrameType) -> ast.expr | None:
    """`self.trainer` of `self.trainer.callback_metrics`, in the function that failed."""
    for node in nodes_of(frame) if is_users(frame.f_code.co_filename) else ():
        if isinstance(node, ast.Attribute) and node.attr in _METRICS:
            return node.value
    return None


def _trainer(read: ast.expr, frame: FrameType) -> Any:
    if ast.unparse(read) != "self.trainer":
        return value_of(read, frame)
    try:  # a property of a module's
        return getattr(frame.f_locals.get("self"), "trainer", None)
    except RuntimeError:  # of a module that has none
        return None
