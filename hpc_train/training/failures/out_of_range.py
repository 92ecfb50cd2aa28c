"""A number that is out of the range of what it stands for: an id, a label, a dimension.

The tensors are read where torch raised it, which it does on a CPU: nothing waits for a GPU.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of
from hpc_train.training.failures.ignored_labels import (
    given_labels,
    is_ignored,
    is_of_image,
    with_ignored,
)
from hpc_train.training.failures.layers import (
    as_written,
    failed_layer,
    frames_of,
    owners,
    shown_layer,
)

_OF_IDS = "index out of range in self"
_OF_LABEL = re.compile(r"Target (?P<label>-?\d+) is out of bounds")
_OF_DIMENSION = re.compile(
    r"Dimension out of range \(expected to be in range of \[-\d+, (?P<last>\d+)\],"
    r" but got (?P<got>-?\d+)\)"
)
# torch's aten/src/ATen/native/TensorShape.cpp
_OF_ORDER = re.compile(
    r"input\.dim\(\) = (?P<has>\d+) is not equal to len\(dims\) = (?P<named>\d+)"
)
# Operations along one dimension, which as a rule is that of the classes, or of the features.
_ALONG_ONE = (
    *("argmax", "argmin", "softmax", "log_softmax", "logsumexp", "max", "min"),
    *("sum", "mean", "std", "var", "norm", "topk"),
)


def out_of_range(error: BaseException) -> str:
    """What to write; empty where the error is of something else, or it is not known."""
    said = str(error)
    if isinstance(error, RuntimeError) and (found := _OF_ORDER.search(said)):
        return _of_order(error, int(found["has"]), int(found["named"]))
    if not isinstance(error, IndexError):
        return ""
    if said == _OF_IDS:
        return _of_ids(frames_of(error))
    if found := _OF_LABEL.match(said):
        return _of_label(int(found["label"]), frames_of(error), error)
    if found := _OF_DIMENSION.match(said):
        return _of_dimension(error, int(found["last"]), int(found["got"]))
    return ""


def _of_ids(frames: Sequence[FrameType]) -> str:
    """Of an nn.Embedding: its rows, and the id that is beyond them."""
    found = failed_layer(frames)
    if found is None or type(found[0]).__name__ != "Embedding" or not _is_on_cpu(found[1]):
        return ""
    layer, ids = found
    least, most, rows = int(ids.min()), int(ids.max()), layer.num_embeddings
    if least >= 0 and most < rows:
        return ""
    takes = f"{shown_layer(layer, frames)} takes ids from 0 to {rows - 1}"
    if least < 0:
        return f"{takes}, and is given {least}"
    larger = f"write a number above all ids of the data in place of {rows} ({most + 1} or more)"
    return f"{takes}, and is given {most}: {larger}, or give it other ids"


def _of_label(label: int, frames: Sequence[FrameType], error: BaseException) -> str:
    """Of cross_entropy and nll_loss: the classes of the logits, and the layer that gives them."""
    logits = frames[-1].f_locals.get("input") if frames else None
    shape = shape_of(logits)
    if not shape or str(frames[-1].f_globals.get("__name__", "")) != "torch.nn.functional":
        return ""
    classes = shape[1] if len(shape) > 1 else shape[0]
    has = f"the logits have the shape {list(shape)}, for the labels 0 to {classes - 1}"
    labels = _counted_labels(frames[-1])
    if labels is not None and classes == 2 and is_of_image(labels):
        y = given_labels(error, frames[-1].f_locals.get("target"))
        alone = "the labels are 0 and 255 alone, as of a black-and-white image"
        return f"{has}, and {alone}: write ({y} > 127).long() for {y}"
    if labels is not None and (ignored := is_ignored(labels, classes)) is not None:
        fix = with_ignored(ignored, error, frames)
        marks = f"where {ignored} marks what has no class, or give other labels"
        return f"{has}, and this batch has the label {ignored} as well: {fix} {marks}"
    if label < classes:
        return f"{has}, and a label is {label}"
    counted = labels is not None
    least, most = (int(labels.min()), int(labels.max())) if labels is not None else (0, label)
    said = f"{has}, and {'the largest label of this batch' if counted else 'a label'} is {most}"
    less = "y - 1 where labels begin at 1" if (least, most) == (1, classes) else "other labels"
    made_by = _made_by(classes, frames)
    if made_by is None:
        return f"{said}: give the last layer {most + 1} outputs or more, or {less}"
    larger = as_written(made_by, out_features=most + 1)
    return f"{said}: write {larger} or more for {shown_layer(made_by, frames)}, or {less}"


def _counted_labels(frame: FrameType) -> Any:
    """Those of a batch, of which torch names the first that is out of range; None of a GPU's."""
    labels: Any = frame.f_locals.get("target")
    if not _is_on_cpu(labels):
        return None
    counted = labels[labels != frame.f_locals.get("ignore_index", -100)]
    return counted if counted.numel() else None


def _made_by(classes: int, frames: Sequence[FrameType]) -> Any:
    """The one layer of the model with as many outputs; None where there are several, or none."""
    for owner in owners(frames):
        held = [it for _, it in owner.named_modules() if type(it).__name__ == "Linear"]
        found = [it for it in held if getattr(it, "out_features", None) == classes]
        return found[0] if len(found) == 1 and found[0] is held[-1] else None
    return None


def _of_dimension(error: BaseException, last: int, got: int) -> str:
    """Of `out.argmax(2)`: the dimensions that `out` has."""
    raised_in = str(frames_of(error)[-1].f_globals.get("__name__", ""))
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and _gives(it, got)]
    if frame is None or len(calls) != 1:
        return ""
    if raised_in != frame.f_globals.get("__name__") and not raised_in.startswith("torch."):
        return ""
    call = calls[0]
    of = _asked(call, frame)
    shape = shape_of(value_of(of, frame)) if of else None
    is_made_there = isinstance(of, ast.Call | ast.BinOp)
    if of is None or (shape is None and not is_made_there) or len(shape or ()) not in (0, last + 1):
        return ""
    many = f"{last + 1} dimension{'s' if last else ''}"
    said = f"{ast.unparse(of)} has the shape {list(shape)}, which has" if shape else ""
    said = f"{said or f'{ast.unparse(of)} has'} {many}, {_numbers(last)}"
    is_along_one = ast.unparse(call.func).rpartition(".")[2] in _ALONG_ONE
    return f"{said}: write {_with(call, got, last)} for the last" if is_along_one else said


def _of_order(error: BaseException, has: int, named: int) -> str:
    """Of `x.permute(0, 2, 1)`, where `x` has another number of dimensions."""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and _is_permute(it)]
    of = _asked(calls[0], frame) if frame is not None and len(calls) == 1 else None
    shape = shape_of(value_of(of, frame)) if of is not None and frame is not None else None
    if of is None or shape is None or len(shape) != has:
        return ""
    said = f"{ast.unparse(of)} has the shape {list(shape)}, and permute names {named} dimensions"
    return f"{said}: name {has}, which are {_numbers(has - 1)}"


def _is_permute(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] == "permute"


def _asked(call: ast.Call, frame: FrameType) -> ast.expr | None:
    """The tensor of `x.argmax(2)` and `torch.argmax(x, 2)`; None of another call."""
    if not isinstance(call.func, ast.Attribute):
        return None
    if type(value_of(call.func.value, frame)).__name__ == "module":
        return call.args[0] if call.args else None
    return call.func.value


def _numbers(last: int) -> str:
    return " and ".join(filter(None, (", ".join(map(str, range(last))), str(last))))


def _gives(call: ast.Call, number: int) -> bool:
    return any(_is(it, number) for it in (*call.args, *(it.value for it in call.keywords)))


def _is(node: ast.expr, number: int) -> bool:
    return ast.unparse(node) == str(number)


def _with(call: ast.Call, old: int, new: int) -> str:
    """The call as it stands, with another number."""
    args = [str(new) if _is(it, old) else ast.unparse(it) for it in call.args]
    args += [
        f"{it.arg}={new if _is(it.value, old) else ast.unparse(it.value)}" for it in call.keywords
    ]
    return f"{ast.unparse(call.func)}({', '.join(args)})"


def _is_on_cpu(tensor: Any) -> bool:
    return getattr(getattr(tensor, "device", None), "type", "") == "cpu"
