"""Logits of each row of a sample, as of each step of a sequence, where it has one label."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_of, shown_file
from hpc_train.training.failures.frame_values import attribute_of, failing_line, shape_of, value_of
from hpc_train.training.failures.layers import frames_of
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_LOSSES = ("cross_entropy", "nll_loss")  # of torch.nn.functional
_GIVE = {  # layers, and the name of what they give
    **dict.fromkeys(("Linear", "LazyLinear"), "out_features"),
    **dict.fromkeys(("Conv1d", "LazyConv1d"), "out_channels"),
}
_EACH_ROW = (  # layers that do the same with each row, so that one may be chosen in front of them
    *("Linear", "Dropout", "LayerNorm", "Identity", "Softmax", "LogSoftmax"),
    *("ReLU", "LeakyReLU", "ELU", "GELU", "SiLU", "Tanh", "Sigmoid"),
)
_NO_BRACKETS = ast.Name | ast.Attribute | ast.Call | ast.Subscript


def row_logits(error: BaseException) -> str:
    """Both shapes, and what to write where the rows are made; empty of another error."""
    frames = frames_of(error)
    if not frames or not isinstance(error, RuntimeError | ValueError):
        return ""
    loss = frames[-1]
    if loss.f_globals.get("__name__") != "torch.nn.functional":
        return ""
    has, wants = (shape_of(loss.f_locals.get(name)) for name in ("input", "target"))
    line = failing_line(error)
    if loss.f_code.co_name not in _LOSSES or not has or not wants or line is None:
        return ""
    labels = wants[:1] if wants[1:] == (1,) and 1 not in has[1:] else wants
    if len(has) != 3 or len(labels) != 1 or labels[0] not in has[:2]:
        return ""
    frame, nodes = line
    pair = _given(nodes, frame, loss.f_locals.get("target"))
    model = _model_of(pair[0], frame) if pair else None
    axis = _axis(has, labels[0], model or frame.f_locals.get("self"))
    rows = f"{has[axis]} row{'s' if has[axis] > 1 else ''} a sample"
    said = f"the logits have the shape {[*has]}, {rows},"
    said = f"{said} and the labels {[*wants]}, one a sample"
    y = ast.unparse(pair[1]) if pair else "y"
    column = f", and {y}.squeeze(1) for {y}" if labels != wants else ""
    return f"{said}: {_write(model, pair, axis, has[axis])}{column}"


def _given(
    nodes: Sequence[ast.AST], frame: FrameType, labels: Any
) -> tuple[ast.expr, ast.expr] | None:
    """Logits and labels as the line has them; None where that is not sure."""
    fit = []
    for it in nodes:
        if not isinstance(it, ast.Call):
            continue
        named = {word.arg: word.value for word in it.keywords}
        given = [*it.args[:2], *(named[name] for name in ("input", "target") if name in named)]
        if len(given) == 2 and value_of(given[1], frame) is labels:
            fit.append((given[0], given[1]))
    return fit[0] if len(fit) == 1 else None


def _model_of(logits: ast.expr, frame: FrameType) -> Any:
    """The module of `self(x)`, also of a name that was given its value so; else None."""
    if isinstance(logits, ast.Name):
        given = [it for it in nodes_of(frame) if isinstance(it, ast.Assign)]
        given = [it for it in given if any(_names(part, logits.id) for part in it.targets)]
        is_plain = len(given) == 1 and isinstance(given[0].targets[0], ast.Name)
        return _model_of(given[0].value, frame) if is_plain else None
    found = value_of(logits.func, frame) if isinstance(logits, ast.Call) else None
    return found if "_modules" in getattr(found, "__dict__", {}) else None


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(it, ast.Name) and it.id == name for it in ast.walk(target))


def _axis(has: tuple[int, ...], samples: int, model: Any) -> int:
    """The dimension of the rows: the last one behind layers that give classes before it."""
    if has[0] != samples:
        return 0
    modules = model.modules() if hasattr(model, "modules") else ()
    kinds = [(it, _GIVE.get(type(it).__name__)) for it in modules]
    gives = {getattr(it, name) for it, name in kinds if name}
    return 2 if has[1] in gives and has[2] not in gives else 1


def _write(model: Any, pair: tuple[ast.expr, ast.expr] | None, axis: int, rows: int) -> str:
    forward = own_method(model, "forward") if model is not None else None
    file = getattr(getattr(forward, "__code__", None), "co_filename", "")
    lines, first = lines_of(forward) if file and is_users(file) else ([], 0)
    node = parsed(lines)
    made = _made(node) if node else None
    if made is None:
        return f"write {_either(pair[0] if pair else ast.Name('logits'), axis, rows)}"
    where = f"in {shown_file(file)}:{first + made.lineno - 1}"
    if axis < 2 and isinstance(made, ast.Call) and _is_head(made, model):
        return f"{where} write {_either(made.args[0], axis, rows, ast.unparse(made.func))}"
    return f"{where} write {_either(made, axis, rows)}"


def _made(forward: ast.FunctionDef) -> ast.expr | None:
    """What makes the value that it returns; None where it returns at several places."""
    returned = [it.value for it in ast.walk(forward) if isinstance(it, ast.Return)]
    if len(returned) != 1 or isinstance(returned[0], ast.Tuple):
        return None
    value = returned[0]
    if isinstance(value, ast.Name):
        given = [it for it in ast.walk(forward) if isinstance(it, ast.Assign)]
        given = [it for it in given if any(_names(part, value.id) for part in it.targets)]
        last = max(given, key=lambda it: it.lineno) if given else None
        if last is not None and last in forward.body and isinstance(last.targets[0], ast.Name):
            return last.value
    return value


def _is_head(call: ast.Call, model: Any) -> bool:
    """Whether it is `self.head(x)` of layers that do the same with each row."""
    function = call.func
    if not isinstance(function, ast.Attribute) or ast.unparse(function.value) != "self":
        return False
    layer = attribute_of(model, function.attr)
    inner = [*layer.modules()] if type(layer).__module__.startswith("torch.nn.") else []
    plain = [it for it in inner if type(it).__name__ != "Sequential"]
    return bool(plain) and len(call.args) == 1 and not call.keywords and all(map(_is_plain, plain))


def _is_plain(layer: Any) -> bool:
    return type(layer).__name__ in _EACH_ROW


def _either(of: ast.expr, axis: int, rows: int, head: str = "") -> str:
    """`self.head(out[:, -1]), of the last row, or self.head(out.mean(1)), of their mean`."""
    text = ast.unparse(of)
    text = text if isinstance(of, _NO_BRACKETS) else f"({text})"
    last, mean = f"{text}[{':, ' * axis}-1]", f"{text}.mean({axis})"
    if rows == 1:
        return f"{head}({last})" if head else last
    if head:
        last, mean = f"{head}({last})", f"{head}({mean})"
    return f"{last}, of the last row, or {mean}, of their mean"
