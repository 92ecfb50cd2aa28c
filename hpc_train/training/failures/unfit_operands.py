"""Two tensors of one operation whose sizes do not fit: which they are, and the layer to change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at, nodes_of
from hpc_train.training.failures.frame_values import shape_of, value_of
from hpc_train.training.failures.layers import as_written, shown_layer
from hpc_train.training.failures.loss_shapes import shapes_of_loss
from hpc_train.training.failures.time_steps import last_time_step

# torch's aten/src/ATen/ExpandUtils.cpp: a is the first of the two.
_UNFIT = re.compile(
    r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    r" at non-singleton dimension (\d+)"
)
_MOST = 60  # characters of an operand that are told
_LABELS = "int64"
_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_OF_LOSSES = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")

_Pair = tuple[ast.AST, ast.expr, ast.expr]  # an operation, and what it is done with


@dataclass(frozen=True)
class _Operand:
    node: ast.expr
    size: int
    shape: tuple[int, ...] | None

    @property
    def written(self) -> str:
        return ast.unparse(self.node)


def unfit_operands(error: BaseException) -> str:
    """Both with what is known of their shapes, and what to write; empty where that is not sure."""
    found = _UNFIT.search(str(error)) if isinstance(error, RuntimeError) else None
    at = _users_last(error) if found else None
    if found is None or at is None:
        return ""
    frame, line = at.tb_frame, at.tb_lineno
    a, b, dimension = map(int, found.groups())
    pairs = [it for it in _pairs(nodes_at(frame, line)) if _is_there(it[0], at)]
    fit = [(it, both) for it in pairs if (both := _operands(it, (a, b), dimension, frame))]
    if len(fit) != 1:
        return ""
    (operation, _, _), both = fit[0]
    both = _as_given(both, operation, error)
    said = _told(both, dimension)
    write = _of_layer(operation, both, dimension, at) or _of_labels(operation, both, frame)
    return f"{said}{write or _of_time_steps(both, at)}"


def _as_given(
    both: tuple[_Operand, _Operand], operation: ast.AST, error: BaseException
) -> tuple[_Operand, _Operand]:
    """The two, with the shapes that a loss of torch's was given where only one is known."""
    given = shapes_of_loss(error) if isinstance(operation, ast.Call) else None
    if not given or any(it.shape not in (None, has) for it, has in zip(both, given, strict=True)):
        return both
    left, right = (replace(it, shape=has) for it, has in zip(both, given, strict=True))
    return left, right


def _users_last(error: BaseException) -> TracebackType | None:
    found, at = None, error.__traceback__
    while at is not None:
        found = at if is_users(at.tb_frame.f_code.co_filename) else found
        at = at.tb_next
    return found


def _pairs(nodes: Iterator[ast.AST]) -> Iterator[_Pair]:
    for it in nodes:
        if isinstance(it, ast.BinOp) and not isinstance(it.op, ast.MatMult):
            yield it, it.left, it.right
        elif isinstance(it, ast.Compare) and len(it.comparators) == 1:
            yield it, it.left, it.comparators[0]
        elif isinstance(it, ast.AugAssign):
            yield it, it.target, it.value
        elif isinstance(it, ast.Call) and len(it.args) >= 2:
            yield it, it.args[0], it.args[1]


def _is_there(node: ast.AST, at: TracebackType) -> bool:
    """Whether the traceback stands at this part of its line; Python tells that since 3.11."""
    positions = getattr(at.tb_frame.f_code, "co_positions", None)
    if positions is None:
        return True
    first, last, column, end = [*positions()][at.tb_lasti // 2]
    here = (getattr(node, it, None) for it in ("lineno", "end_lineno", "col_offset"))
    return (*here, getattr(node, "end_col_offset", None)) == (first, last, column, end)


def _operands(
    pair: _Pair, sizes: Sequence[int], dimension: int, frame: FrameType
) -> tuple[_Operand, _Operand] | None:
    """The two with their sizes there; None where a known shape has another, or none is known."""
    left, right = (
        _Operand(node, size, shape_of(_value(node, frame)))
        for node, size in zip(pair[1:], sizes, strict=True)
    )
    shapes = [it.shape for it in (left, right) if it.shape is not None]
    most = max(map(len, shapes), default=0)
    is_short = all(len(it.written) <= _MOST for it in (left, right))
    for it in (left, right):
        if it.shape is not None and it.size not in _at(it.shape, dimension, most, len(shapes)):
            return None
    return (left, right) if shapes and is_short else None


def _at(shape: tuple[int, ...], dimension: int, most: int, known: int) -> Sequence[int]:
    """What it may have at a dimension of the result, which counts those of the longer shape."""
    if known == 1:  # the other one may have more
        return shape[: dimension + 1]
    place = dimension - (most - len(shape))
    return shape[place : place + 1] if place >= 0 else ()


def _value(node: ast.expr, frame: FrameType) -> Any:
    """As `value_of`, and of `batch[1]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        whole, key = value_of(node.value, frame), node.slice.value
        if type(whole) in (list, tuple) and isinstance(key, int) and key < len(whole):
            return whole[key]
        return whole.get(key) if type(whole) is dict else None
    return value_of(node, frame)


def _told(both: Sequence[_Operand], dimension: int) -> str:
    left, right = both
    if left.shape and right.shape:
        said = f"{left.written} is {[*left.shape]} and {right.written} is {[*right.shape]}"
        is_same = len(left.shape) == len(right.shape)
        return f"{said}, dimension {dimension} differs" if is_same else said
    known, other = (left, right) if left.shape else (right, left)
    said = f"{other.written} has {other.size} at dimension {dimension}"
    return f"{said}, and {known.written}, {[*(known.shape or ())]}, has {known.size}"


def _of_layer(
    operation: ast.AST, both: Sequence[_Operand], dimension: int, at: TracebackType
) -> str:
    """What to write for the last layer of the one of them that a layer has made."""
    frame = at.tb_frame
    for of, other in (both, both[::-1]):
        shape = of.shape or other.shape or ()
        layer = _last_linear(_made_by(of.node, frame, at.tb_lineno))
        if dimension != len(shape) - 1 or layer is None or layer.out_features != of.size:
            continue
        if other.shape and len(other.shape) != len(shape):
            continue
        fits = as_written(layer, out_features=other.size)
        leave = ""
        if isinstance(operation, ast.BinOp) and isinstance(operation.op, ast.Add):
            leave = f", or leave + {other.written} out"
        return f": write {fits} for {shown_layer(layer, [frame])}{leave}"
    return ""


def _of_time_steps(both: Sequence[_Operand], at: TracebackType) -> str:
    """What to write where one of them is of all time steps, and the other of one."""
    for of, other in (both, both[::-1]):
        call = _call_of(of.node, at.tb_frame, at.tb_lineno)
        if said := last_time_step(call, at.tb_frame, of.shape or (), other.shape or ()):
            return said
    return ""


def _made_by(node: ast.expr, frame: FrameType, line: int) -> Any:
    """`self.layers` of `self.layers(x)`, also of a name that was given its value above."""
    call = _call_of(node, frame, line)
    return value_of(call.func, frame) if isinstance(call, ast.Call) else None


def _call_of(node: ast.expr, frame: FrameType, line: int) -> ast.expr | None:
    """The expression, or the one that a name was given once above."""
    if isinstance(node, ast.Name):
        above = [it for it in nodes_of(frame) if 0 < getattr(it, "lineno", 0) < line]
        stored = [it for it in above if isinstance(it, ast.Name) and it.id == node.id]
        stored = [it for it in stored if not isinstance(it.ctx, ast.Load)]
        given = [it.value for it in above if isinstance(it, ast.Assign) and stored == it.targets]
        if len(given) != 1:
            return None
        node = given[0]
    return node


def _last_linear(layer: Any) -> Any:
    """It, or the last of an nn.Sequential, where that is an nn.Linear; None of others."""
    kind = type(layer).__name__
    if not type(layer).__module__.startswith("torch.nn."):
        return None
    if kind == "Sequential":
        inner = [*layer.children()]
        return _last_linear(inner[-1]) if inner else None
    return layer if kind == "Linear" else None


def _of_labels(operation: ast.AST, both: Sequence[_Operand], frame: FrameType) -> str:
    """Of numbers of classes, which a loss of distances was given."""
    out, y = both
    if not isinstance(operation, ast.Call) or not out.shape or not y.shape:
        return ""
    name = ast.unparse(operation.func).rpartition(".")[2]
    is_distance = name in _LOSSES or type(value_of(operation.func, frame)).__name__ in _OF_LOSSES
    labels = str(getattr(_value(y.node, frame), "dtype", "")).removeprefix("torch.")
    if not is_distance or labels != _LABELS or out.shape[:1] != y.shape or len(out.shape) != 2:
        return ""
    return f": of labels of classes write F.cross_entropy({out.written}, {y.written})"
