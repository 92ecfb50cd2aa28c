"""A metric that a validation reads before the training has logged it: `callback_metrics["loss"]`.

Lightning validates two batches before the first step, its sanity check, and what is logged once an
epoch comes behind the epoch's validation (pytorch_lightning/loops/fit_loop.py).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hpc_train.config.words import near_words
from hpc_train.training.frame_text import is_users, nodes_of, shown_file
from hpc_train.training.frame_values import value_of
from hpc_train.training.layers import frames_of
from hpc_train.training.private.lightning_frames import in_sanity_check
from hpc_train.training.private.logged_names import logged_names
from hpc_train.training.users_method import class_text

_METRICS = ("callback_metrics", "logged_metrics")
_NO_TRAINING = ("validation", "on_validation", "test", "on_test", "predict", "on_predict")
_ONCE_AN_EPOCH = ("on_train_epoch_end", "on_train_end")
_NEAR = 0.85  # as near is a name that is mistyped


@dataclass(frozen=True)
class _Log:
    """A call of self.log.

    Attributes:
        place: `tab.py:42`.
        method: In which it stands.
        name: Of the metric; empty where it is worked out.
        by_step: Whether the value of each step is kept.
    """

    place: str
    method: str
    name: str
    by_step: bool


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
    logs = [it for it in _logs(trainer.lightning_module) if not it.method.startswith(_NO_TRAINING)]
    own = next((it for it in logs if name in (it.name, f"{it.name}_step")), None)
    epochs = next((it for it in logs if name == f"{it.name}_epoch"), None)
    if epochs or (own and not own.by_step):
        return _of_epoch(name, epochs or own)
    is_mistyped = bool(near_words(name, sorted(known), cutoff=_NEAR))
    in_check = any(in_sanity_check(it.f_code.co_name) for it in frames)
    if not in_check or (own is None and is_mistyped):
        return ""
    if own is None and all(it.name for it in logs):
        return ""
    where = f"is logged in {own.method} ({own.place})" if own else "is not logged by then"
    said = f"{name} {where}, and this validation is the sanity check before the training"
    return f"{said}: {_without_check(ast.unparse(read), frame)}"


def _of_epoch(name: str, log: _Log | None) -> str:
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


def _logs(model: Any) -> Iterator[_Log]:
    """Those in the methods of the model's own classes, but for methods that another replaces."""
    seen: set[str] = set()
    for kind in type(model).__mro__:
        try:
            file = inspect.getsourcefile(kind)
            lines, first = inspect.getsourcelines(kind) if file and is_users(file) else ([], 0)
        except (OSError, TypeError):
            continue
        tree = class_text(lines, first)
        methods = [it for it in tree.body if isinstance(it, ast.FunctionDef)] if tree else []
        for method in (it for it in methods if it.name not in seen):
            for call in (it for it in ast.walk(method) if isinstance(it, ast.Call)):
                if ast.unparse(call.func) in ("self.log", "self.log_dict"):
                    yield from _of_call(call, method.name, shown_file(str(file)))
        seen |= {it.name for it in methods}


def _of_call(call: ast.Call, method: str, file: str) -> Iterator[_Log]:
    named = {it.arg: it.value for it in call.keywords}
    by_step = named.get("on_step")
    is_off = isinstance(by_step, ast.Constant) and by_step.value is False
    given = (*call.args, *(named[it] for it in ("name", "dictionary") if it in named))[:1]
    keys = [key for it in given for key in (it.keys if isinstance(it, ast.Dict) else [it])]
    for key in keys:
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        is_by_step = not is_off and method not in _ONCE_AN_EPOCH
        yield _Log(f"{file}:{call.lineno}", method, text, is_by_step)
