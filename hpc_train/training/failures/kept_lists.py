"""A list that a class keeps over the steps of an epoch: it was never made, or nothing fills it."""

from __future__ import annotations

import ast
import re

from hpc_train.training.failures.frame_text import shown_class, shown_file
from hpc_train.training.failures.frame_values import failing_line, value_of
from hpc_train.training.failures.unset_attributes import text_of_class, value_of_attribute

_NONE_THERE = re.compile(
    r"expected a non-empty list of Tensors|stack expects a non-empty TensorList"
    r"|need at least one array to (?:concatenate|stack)"
)
_JOINS = ("stack", "cat", "concat", "concatenate", "vstack", "hstack", "dstack", "column_stack")
_FILLS = ("append", "extend", "insert")
_MADE = {**dict.fromkeys(_FILLS, "[]"), "add": "set()"}
_STEP_OF = re.compile(r"on_(train|validation|test|predict)_epoch_end\Z")


def kept_list(error: BaseException) -> str:
    """What to write; empty where the error is of anything else."""
    if isinstance(error, AttributeError):
        return _never_made(error)
    if isinstance(error, RuntimeError | ValueError) and _NONE_THERE.search(str(error)):
        return _never_filled(error)
    return ""


def _never_made(error: AttributeError) -> str:
    """Of `self.outs.append(...)` where no line of the class assigns it."""
    at = failing_line(error)
    owner = at[0].f_locals.get("self") if at else None
    if at is None or owner is None or error.obj is not owner or not error.name:
        return ""
    text = text_of_class(type(owner))
    if not text or "setattr" in text or re.search(rf"self\.{error.name}\b[^\n=(]*=(?!=)", text):
        return ""
    for node in at[1]:
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Attribute) or called.attr not in _MADE:
            continue
        if ast.unparse(called.value) == f"self.{error.name}":
            made = f"self.{error.name} = {_MADE[called.attr]}"
            named = shown_class(type(owner))
            says = f"no line of {named} makes self.{error.name}: write {made} in __init__"
            return f"{says}, behind super().__init__()"
    return ""


def _never_filled(error: BaseException) -> str:
    """Of `torch.stack(self.outs)`: which list is empty, and what was to fill it."""
    at = failing_line(error)
    for node in at[1] if at else ():
        if not isinstance(node, ast.Call) or not node.args or at is None:
            continue
        given = node.args[0]
        if ast.unparse(node.func).rpartition(".")[2] not in _JOINS:
            continue
        value = value_of(given, at[0])
        if not isinstance(value, list | tuple) or value:
            continue
        name, owner = ast.unparse(given), at[0].f_locals.get("self")
        if name.startswith("self.") and owner is not None:
            return _of_attribute(type(owner), name, at[0].f_code.co_name)
        return f"{name} is empty there"
    return ""


def _of_attribute(kind: type, name: str, hook: str) -> str:
    text = text_of_class(kind)
    filled = rf"{re.escape(name)}\s*(?:\+=|\.(?:{'|'.join(_FILLS)})\()"
    place, _ = value_of_attribute(kind, name.removeprefix("self."))
    where = f"{name}{f' ({shown_file(place)})' if place else ''} is empty there"
    others = len(re.findall(rf"{re.escape(name)}\b", text))
    assigned = len(re.findall(rf"{re.escape(name)}\s*(?::[^=\n]*)?=(?!=)", text))
    found = _STEP_OF.match(hook)
    if not text or re.search(filled, text) or others > assigned + 1 or found is None:
        return where
    step = {"train": "training"}.get(found[1], found[1])
    return (
        f"{where}, and nothing in {shown_class(kind)} fills it: {name}.append(...) in {step}_step"
    )
