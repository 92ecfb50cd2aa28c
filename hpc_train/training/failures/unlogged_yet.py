"""A metric that is read before anything has logged it, as of a validation in the first epoch.

callback_metrics is empty when a fit begins, and what the sanity check has logged is taken out of
it (pytorch_lightning/trainer/trainer.py, `_run_sanity_check`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from types import FrameType
from typing import Any

from hpc_train.config.fit.near_metrics import near_metrics, step_of
from hpc_train.training.failures.frame_text import nodes_of, shown_file
from hpc_train.training.failures.model_logs import ModelLog
from hpc_train.training.private.logged_names import logged_names

_OF_VALIDATION = ("validation", "on_validation")
_OF_OTHERS = ("test", "on_test", "predict", "on_predict")
_BEFORE_STEPS = (
    *("setup", "configure_optimizers", "on_fit_start", "on_train_start", "on_train_epoch_start"),
    *("on_train_batch_start", "training_step"),
)
_MOST = 5  # names that are told
_MOST_THERE = 12


def unlogged_yet(
    name: str, logs: Sequence[ModelLog], trainer: Any, written: str, frame: FrameType
) -> str:
    """When it will be logged, and what to write; empty where it is not told.

    Args:
        logs: All that the model logs.
        trainer: Which has no such name.
        written: That Trainer as the line has it.
        frame: Of what reads it.
    """
    known, hook = logged_names(trainer), frame.f_code.co_name
    if trainer.current_epoch > 0:
        return ""
    is_first, read = trainer.global_step == 0, _instead(name, written, frame)
    forms = [(it, (it.name, f"{it.name}_step", f"{it.name}_epoch")) for it in logs]
    own = [it for it, form in forms if name in form and not it.method.startswith(_OF_OTHERS)]
    if not own:
        return _of_others(name, known, logs, written, read) if is_first else ""
    where = f"{name} is logged in {own[0].method} ({own[0].place})"
    if own[0].method.startswith(_OF_VALIDATION):
        of_validation = {it.name for it in logs if it.method.startswith(_OF_VALIDATION)}
        if hook.startswith(_OF_VALIDATION) or of_validation & set(known):
            return ""
        write = f"write {_moved(frame, 'on_validation_epoch_end')}{read}"
        said = f"{where}, and there was no validation but the sanity check so far"
        return f"{said}: {write}"
    if hook not in _BEFORE_STEPS or not is_first:
        return ""
    write = f"write {_moved(frame, 'on_train_epoch_end')}{read}"
    return f"{where}, and there was no step so far: {write}"


def _of_others(
    name: str, known: Collection[str], logs: Sequence[ModelLog], written: str, read: str
) -> str:
    """Of a name that the model's text does not show."""
    names = list(dict.fromkeys(it.name for it in logs))
    if known or not logs:
        return ""
    said = f"{written}.callback_metrics is empty there, as there was no step so far"
    if not all(names):  # one of those that are worked out may be it
        return f"{said}: write {read}"
    near = near_metrics(name, names)
    return f"{said}, and the model logs {', '.join(names[:_MOST])}{f': {near}' if near else ''}"


def what_is_there(name: str, trainer: Any, written: str, frame: FrameType) -> str:
    """What has been logged by then, where the model's text does not tell when the name comes.

    Args:
        written: The Trainer as the line has it.
        frame: Of what reads it.
    """
    known = sorted(logged_names(trainer) - {"epoch", "step"})
    shown = ", ".join(known[:_MOST_THERE]) + (", ..." if len(known) > _MOST_THERE else "")
    said = f"{written}.callback_metrics {f'has {shown}' if known else 'is empty'} there"
    validated = trainer.current_epoch > 0 or any(map(_is_of_validation, known))
    if _is_of_validation(name) and not validated and trainer.enable_validation:
        read, moved = _instead(name, written, frame), _moved(frame, "on_validation_epoch_end")
        move = moved or "read it in on_validation_epoch_end, or write "
        write = move if not moved else f"write {move}"
        return f"{said}, as there was no validation but the sanity check so far: {write}{read}"
    near = near_metrics(name, known)
    return f"{said}: {near}" if near else said if known else ""


def _is_of_validation(name: str) -> bool:
    return step_of(name) == "validation_step"


def _moved(frame: FrameType, hook: str) -> str:
    """To which hook all of it goes, from another one without a batch."""
    code = frame.f_code
    if not code.co_name.startswith("on_") or "batch" in code.co_name:
        return ""
    at = f"{shown_file(code.co_filename)}:{code.co_firstlineno}"
    return f"{hook} for {code.co_name} ({at}), or "


def _instead(name: str, written: str, frame: FrameType) -> str:
    """`trainer.callback_metrics.get("val_loss", float("nan"))` for the line's `[...]`."""
    held = [
        ast.unparse(it.value)
        for it in nodes_of(frame)
        if isinstance(it, ast.Subscript) and ast.unparse(it.slice) == repr(name)
    ]
    of = held[0] if held else f"{written}.callback_metrics"
    return f'{of}.get("{name}", float("nan"))'
