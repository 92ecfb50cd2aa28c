"""A shape that does not fit what it is asked of: which number in it is the batch's."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from types import FrameType

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

# torch's aten/src/ATen/InferSize.h, and numpy's multiarray/shape.c
_UNFIT = re.compile(
    r"shape '\[(?P<shape>[-\d, ]+)\]' is invalid for input of size (?P<size>\d+)"
    r"|cannot reshape array of size (?P<of>\d+) into shape \((?P<into>[-\d, ]+)\)"
)
_CALLS = ("view", "reshape")


def fixed_shape(error: BaseException) -> str:
    """What to write, or what stands there; empty where the error is of something else."""
    found = _UNFIT.search(str(error)) if isinstance(error, RuntimeError | ValueError) else None
    line = failing_line(error) if found else None
    if found is None or line is None:
        return ""
    text = found["shape"] or found["into"]
    wanted = [int(it) for it in text.split(",") if it.strip()]
    size = int(found["size"] or found["of"])
    frame, nodes = line
    calls = [it for it in _calls(nodes) if len(it[1]) == len(wanted)]
    if len(calls) != 1:
        return ""
    node, dimensions = calls[0]
    has = shape_of(value_of(node, frame))
    written = ast.unparse(node)
    if has is not None and math.prod(has) != size:
        return ""  # it has been changed since
    return _of_batch(frame, written, dimensions, wanted, size, has) or _as_it_is(written, has)


def _calls(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """What is asked for another shape, and the numbers of that shape as they are written."""
    for call in nodes:
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in _CALLS or call.keywords:
            continue
        of, given = call.func.value, call.args
        if ast.unparse(of) in ("torch", "np", "numpy"):
            of, given = call.args[0], call.args[1:]
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = given[0].elts
        if not any(isinstance(it, ast.Starred) for it in given):
            yield of, given


def _of_batch(
    frame: FrameType,
    written: str,
    dimensions: Sequence[ast.expr],
    wanted: Sequence[int],
    size: int,
    has: tuple[int, ...] | None,
) -> str:
    """Where the first number is that of another batch, and all others fit."""
    rest = wanted[1:]
    first, others = ast.unparse(dimensions[0]), ", ".join(map(ast.unparse, dimensions[1:]))
    if wanted[0] < 0 or re.search(r"size\(|shape|len\(", first):
        return ""
    if rest == [-1] and has:
        rows, write = has[0], f"{written}.size(0), -1"
    elif rest and min(rest) > 0 and not size % math.prod(rest):
        rows, write = size // math.prod(rest), f"-1, {others}"
    else:
        return ""
    if rows == wanted[0] or rows not in ({has[0]} if has else _rows_of_locals(frame)):
        return ""
    is_number = isinstance(dimensions[0], ast.Constant)
    said = f"{first} stands there as the batch" if is_number else f"{first} is {wanted[0]} there"
    return f"{said}, and this one has {rows}: write {write} in place of {first}, {others}"


def _as_it_is(written: str, has: tuple[int, ...] | None) -> str:
    """The shape that it has, and what that is for each sample."""
    if not has or len(has) < 2:
        return ""
    each = math.prod(has[1:])
    return f"{written} has the shape {list(has)}, which is {each} for each of {has[0]}"


def _rows_of_locals(frame: FrameType) -> set[int]:
    shapes = (shape_of(it) for it in frame.f_locals.values())
    return {it[0] for it in shapes if it}
