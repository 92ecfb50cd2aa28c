"""Labels that are to be class numbers, and have a dimension too many or are no Long: one fix.

A metric, the loss and each step refuse them one after the other, so that a fix of one call leads
to the next failure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.float_labels import STEPS, in_data, whole_numbers
from hpc_train.training.failures.frame_text import nodes_of, shown_file
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of
from hpc_train.training.failures.layers import frames_of, owners
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_LOSSES = ("cross_entropy", "nll_loss")  # of torch.nn.functional
_CASTS = ("long", "to", "type", "int")  # of a tensor, which keep its shape
_LONGEST = 60  # characters of a line that is told as it is written


def class_numbers(error: BaseException) -> str:
    """What to write below the line that gives the labels their name; else empty."""
    frames = frames_of(error)
    frame, nodes = failing_line(error) or (None, [])
    if not frames or frame is None or not isinstance(error, ValueError | RuntimeError):
        return ""
    name, labels = _named(frames[-1].f_locals.get("target"), frame, nodes)
    change = _change(frames[-1], labels) if name else ""
    numbers = whole_numbers(labels) if change else ""
    is_known = numbers or getattr(getattr(labels, "device", None), "type", "cpu") != "cpu"
    if not change or not is_known:
        return ""
    kind, shape = str(labels.dtype).removeprefix("torch."), list(labels.shape)
    said = f"{name} is {kind} {shape}{f' with {numbers}' if numbers else ''}"
    lines = [it.lineno for it in nodes if isinstance(it, ast.Call)]
    binding, places = _places(name, frame, min(lines, default=0), error)
    if not binding:
        return ""
    write = f"write {name} = {name}{change} below {binding} in {' and '.join(places)}"
    wanted = shape[:-1] if "(-1)" in change else [*shape[:1], *shape[2:]]
    said = f"{said}, and class numbers are int64 {wanted}"
    return f"{said}: {write}{in_data(frames, labels, change)}"


def _named(given: Any, frame: FrameType, nodes: Sequence[ast.AST]) -> tuple[str, Any]:
    """The one name of the line for the labels, as it is or as in `y.long()`, and what it has."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Name) and given is not None:
            if frame.f_locals.get(node.id) is given:
                found[node.id] = given
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = value_of(node.func.value, frame)
            is_alike = shape_of(value) is not None and shape_of(value) == shape_of(given)
            if isinstance(node.func.value, ast.Name) and node.func.attr in _CASTS and is_alike:
                found[node.func.value.id] = value
    return next(iter(found.items())) if len(found) == 1 else ("", None)


def _change(frame: FrameType, labels: Any) -> str:
    """`.squeeze(1).long()`, as far as the labels need it; empty of other labels."""
    held, module = frame.f_locals, str(frame.f_globals.get("__name__", ""))
    shape, has = shape_of(labels), shape_of(held.get("preds", held.get("input")))
    is_loss = module == "torch.nn.functional" and frame.f_code.co_name in _LOSSES
    of_classes = module.startswith("torchmetrics.") and "multiclass" in frame.f_code.co_name
    if not shape or not has or not (is_loss or of_classes) or shape[0] != has[0]:
        return ""
    is_of_rows = len(has) == 2 and has[1] > 1
    is_column = shape[1:] == (1,) and (is_of_rows or (of_classes and len(has) == 1))
    is_row = of_classes and len(shape) == 1 and len(has) <= 2 and labels.is_floating_point()
    squeeze = ".squeeze(1)" if is_column else _of_masks(shape, has)
    if is_loss and shape == has and _is_one_hot(labels):
        return ".argmax(1)"
    if not squeeze and not is_row:
        return ""
    long = "" if str(labels.dtype) == "torch.int64" else ".long()"
    return f"{squeeze}{long}"


def _is_one_hot(labels: Any) -> bool:
    """Whether it has one 1 among the classes, and is no probability, which cross_entropy takes."""
    if labels.is_floating_point() or labels.device.type != "cpu" or not labels.numel():
        return False
    return bool((labels.sum(1) == 1).all()) and int(labels.min()) == 0


def _of_masks(shape: tuple[int, ...], has: tuple[int, ...]) -> str:
    """What takes the one channel out of masks; empty of others.

    The logits are [batch, classes, height, width], or with another number of dimensions behind.
    """
    if len(has) < 3 or len(shape) != len(has) or has[1] < 2:
        return ""
    if shape[1] == 1:
        return ".squeeze(1)"
    return ".squeeze(-1)" if shape[-1] == 1 and shape[1:-1] == has[2:] else ""


def _places(
    name: str, frame: FrameType, line: int, error: BaseException
) -> tuple[str, Sequence[str]]:
    """The line above that gives the name, as it is written, and each place that has it so.

    Those are in the same function, or in another step of the same model.
    """
    file = shown_file(frame.f_code.co_filename)
    here = [(number, text) for number, text in _bindings(nodes_of(frame), name)]
    above = [it for it in here if it[0] <= line]
    if not above:
        return "", []
    number, binding = max(above)
    found = {f"{file}:{number}": None}
    found |= {f"{file}:{other}": None for other, text in here if text == binding}
    owner = next(owners(frames_of(error)), None) if frame.f_code.co_name in STEPS else None
    for step in STEPS if owner is not None else ():
        method = own_method(owner, step)
        lines, first = lines_of(method)
        node = parsed(lines)
        for other, text in _bindings(ast.walk(node), name) if node else ():
            if text == binding:
                home = shown_file(method.__code__.co_filename)
                found[f"{home}:{first + other - 1}"] = None
    return (binding if len(binding) <= _LONGEST else "the line"), [*found]


def _bindings(nodes: Iterator[ast.AST], name: str) -> Iterator[tuple[int, str]]:
    """The line and the text of `x, y = batch`, or of `for x, y in loader`."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets, text = node.targets, ast.unparse(node)
        elif isinstance(node, ast.For):
            targets, text = (
                [node.target],
                f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}",
            )
        else:
            continue
        parts = [part for it in targets for part in ast.walk(it)]
        if any(isinstance(it, ast.Name) and it.id == name for it in parts):
            yield node.lineno, text
