"""A loss that depends on no parameter: the method that returned it, and what takes a gradient away.

The error is raised in the backward pass, behind the method, so that no frame names it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import traceback
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Any

from hpc_train.config.fit.cut_forwards import cut_at
from hpc_train.config.fit.sure_losses import detached_loss
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import shape_of
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_OF_NONE = "of tensors does not require grad"
_OF_MANY = "grad can be implicitly created only for scalar outputs"
_STEP = "training_step"
_LOSSES = ("loss", "closure_loss", "tensor")  # as Lightning and torch call it
_KEPT = re.compile(r"reduction\s*=\s*['\"]none['\"]")
_OWNERS = ("model", "pl_module", "lightning_module")
_CUTS = re.compile(
    r"\.detach\(\)|\.item\(\)|\.data\b|\bno_grad\(\)|\binference_mode\(\)|\bargmax\("
    r"|\btorch\.tensor\(|\.numpy\(\)|\.round\(\)"
)
_NO_GRAD = re.compile(r"\b(?:no_grad|inference_mode)\b")
_GENERAL = "no .detach(), .item(), torch.no_grad() or argmax between self(x) and return loss"
_BETWEEN = "no such call between self(x) and return loss"
_LOST = "the loss has no gradient"


def lost_gradient(error: BaseException) -> PlacedFix:
    """Of a loss without a gradient, or of many numbers, out of Lightning's own backward pass.

    Returns:
        The place is that of the method that returned the loss.
    """
    is_cut, is_many = _OF_NONE in str(error), _OF_MANY in str(error)
    if not is_cut and not is_many:
        return PlacedFix()
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    by_hand = any(frame.f_code.co_name == _STEP for frame in frames)
    values = [frame.f_locals.get(name) for frame in frames for name in _OWNERS]
    model = next((it for it in values if hasattr(it, _STEP)), None)
    if model is None or by_hand:  # the line of its backward stands in the traceback
        return PlacedFix(fix=_GENERAL if is_cut else "")
    if is_many:
        return _of_many(model, frames)
    frozen = _all_frozen(model)
    method = own_method(model, _STEP)
    code, (lines, first) = getattr(method, "__code__", None), lines_of(method)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
    if frozen:
        return PlacedFix(where, f"all parameters of {type(model).__name__} are frozen: {frozen}")
    if sure := _of_text(type(model)):
        return sure
    found = _cuts_in(lines, first)
    if found:
        return PlacedFix(where, f"{_LOST}: look at line {found[-1]}: {_BETWEEN}")
    return _of_forward(model) or PlacedFix(where, _GENERAL)


def _of_text(kind: type) -> PlacedFix | None:
    """What takes it away in each training_step, where the text of the class tells that."""
    lines, first = lines_of(kind)
    try:
        definition = ast.parse(textwrap.dedent("".join(lines))).body
    except SyntaxError:  # of a file that has changed
        return None
    if not definition or not isinstance(definition[0], ast.ClassDef):
        return None
    names = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    imports = {name: dotted for name, it in names.items() if (dotted := _dotted(it))}
    found = detached_loss(definition[0], imports)
    if found is None:
        return None
    place = f"{inspect.getfile(kind)}:{first + found[0] - 1}"
    return PlacedFix(place, f"{_STEP} gives a loss without a gradient: {found[1]}")


def _dotted(value: Any) -> str:
    """The name under which a module, or a function of torch's, is imported."""
    if isinstance(value, ModuleType):
        return value.__name__
    module = getattr(value, "__module__", "") if callable(value) else ""
    name = getattr(value, "__qualname__", "")
    return f"{module}.{name}" if str(module).startswith("torch") and isinstance(name, str) else ""


def _cuts_in(lines: Sequence[str], first: int) -> list[str]:
    """`19 (.detach())` of each line that takes a gradient away."""
    cuts = ((number, _CUTS.search(line.partition("#")[0])) for number, line in enumerate(lines))
    return [f"{first + number} ({cut[0].strip('(')})" for number, cut in cuts if cut]


def _of_forward(model: Any) -> PlacedFix | None:
    """What takes it away in the model's own forward; None where nothing there does."""
    forward = own_method(model, "forward")
    lines, first = lines_of(forward)
    found = _cuts_in(lines, first)
    if not found:
        return None
    file = forward.__code__.co_filename
    node = parsed(lines)
    line = cut_at(node, lambda it: bool(_NO_GRAD.search(ast.unparse(it)))) if node else 0
    if line:
        word = _NO_GRAD.search(lines[line - 1])
        said = f"forward computes what it gives under torch.{word[0] if word else 'no_grad'}()"
        return PlacedFix(f"{file}:{first + line - 1}", f"{said}: leave that out of it")
    number, _, word_there = found[-1].partition(" ")
    at = f"{shown_file(file)}:{number} {word_there}"
    return PlacedFix(f"{file}:{number}", f"{_LOST}: look at forward, {at}: {_BETWEEN}")


def _of_many(model: Any, frames: Sequence[FrameType]) -> PlacedFix:
    """Of a loss of each sample, where one number is wanted."""
    method = own_method(model, _STEP)
    code, (lines, first) = getattr(method, "__code__", None), lines_of(method)
    losses = (frame.f_locals.get(name) for frame in reversed(frames) for name in _LOSSES)
    shape = next(filter(None, map(shape_of, losses)), None)
    if code is None or shape is None:
        return PlacedFix()
    kept = [first + number for number, line in enumerate(lines) if _KEPT.search(line)]
    of = f'reduction="none" in line {kept[0]}' if len(kept) == 1 else ""
    said = f"{_STEP} returns a loss of shape {list(shape)}{f' ({of})' if of else ''}"
    node = parsed(lines)
    returned = [it.value for it in ast.walk(node) if isinstance(it, ast.Return)] if node else []
    names = {it.id for it in returned if isinstance(it, ast.Name)}
    mean = f"{names.pop()}.mean()" if len(names) == len(returned) == 1 else "its mean()"
    return PlacedFix(f"{code.co_filename}:{code.co_firstlineno}", f"{said}: return {mean}")


def _all_frozen(model: Any) -> str:
    parameters = list(model.parameters())
    if parameters and not any(it.requires_grad for it in parameters):
        return "requires_grad_(True) for those that are to learn"
    return ""
