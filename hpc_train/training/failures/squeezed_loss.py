"""What to write where a loss is given an input and a target that differ by a dimension of 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from hpc_train.training.failures.frame_values import shape_of, value_of

_NAMES = ("input", "target")  # as torch has them, in this order


@dataclass(frozen=True)
class Given:
    """What a loss function of torch's is given."""

    function: str
    input: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Both, in the order of the arguments."""
        return self.input, self.target


def squeeze(given: Given, frame: FrameType, nodes: Sequence[ast.AST]) -> str:
    """`write out.squeeze(1)`; empty where leaving one dimension out does not make them equal.

    Args:
        frame: Of the user's code, which has computed the loss.
        nodes: Of its line.
    """
    for number, (one, other) in enumerate((given.shapes, given.shapes[::-1])):
        for dim, size in enumerate(one):
            if size == 1 and one[:dim] + one[dim + 1 :] == other:
                written = _written(given, frame, nodes)
                if written and isinstance(
                    written[number], ast.Name | ast.Attribute | ast.Call | ast.Subscript
                ):
                    return f"write {ast.unparse(written[number])}.squeeze({dim})"
                return f"take .squeeze({dim}) of the {_NAMES[number]}"
    return ""


def _written(given: Given, frame: FrameType, nodes: Sequence[ast.AST]) -> tuple[ast.expr, ...]:
    """Input and target as the line has them; empty where that is not sure."""
    calls = [it for it in nodes if isinstance(it, ast.Call)]
    named = [it for it in calls if _name(it) == given.function]
    fit = [pair for it in named or calls for pair in _pairs(it)]
    if not named:
        fit = [pair for pair in fit if _fits(pair, given, frame)]
    return fit[0] if len(fit) == 1 else ()


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _pairs(call: ast.Call) -> Iterator[tuple[ast.expr, ...]]:
    named = {it.arg: it.value for it in call.keywords}
    pair = (*call.args[:2], *(named[it] for it in _NAMES[len(call.args) :] if it in named))
    if len(pair) == 2 and not any(isinstance(it, ast.Starred) for it in pair):
        yield pair


def _fits(pair: tuple[ast.expr, ...], given: Given, frame: FrameType) -> bool:
    """Whether what is known of their shapes is what torch was given, and something is known."""
    known = [shape_of(value_of(it, frame)) for it in pair]
    same = [has == wants for has, wants in zip(known, given.shapes, strict=True) if has is not None]
    return bool(same) and all(same)
