"""What to write where a class refuses a value, by the condition under which its text does."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

_BOUNDS: dict[type[ast.cmpop], str] = {
    ast.Lt: "{0} or more",
    ast.LtE: "more than {0}",
    ast.Gt: "{0} or less",
    ast.GtE: "less than {0}",
}


def hint_of(test: str, given: Sequence[str], known: Collection[str]) -> str:
    """What makes the condition of an error false; empty where that cannot be read off it.

    Args:
        test: The condition, as it is written.
        given: Arguments that it speaks of, and that the config has.
        known: All arguments of the class.
    """
    node = ast.parse(test, mode="eval").body
    if _is_sum(node) and len(given) > 1:
        return f"write one of {', '.join(given)}, and leave the rest out"
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    hints = [_of_part(part, known) for part in parts]
    return f"write {', or '.join(hints)}" if all(hints) else ""


def _is_sum(node: ast.expr) -> bool:
    """Whether it is `a + b > 1`: more than one of them is given."""
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Add)
        and isinstance(node.ops[0], ast.Gt)
        and ast.unparse(node.comparators[0]) == "1"
    )


def _of_part(node: ast.expr, known: Collection[str]) -> str:
    """What makes one comparison false."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return ""
    name = ast.unparse(node.left).removeprefix("self.").lstrip("_")
    sign, other = node.ops[0], node.comparators[0]
    if name not in known:
        return ""
    if isinstance(sign, ast.Is) and ast.unparse(other) == "None":
        return f"{name}: ..."
    try:
        value = ast.literal_eval(other)
    except ValueError:
        return ""
    if isinstance(sign, ast.NotIn) and isinstance(value, (list, tuple)):
        *first, last = map(str, value)
        return f"{name}: {', '.join(first)} or {last}" if first else f"{name}: {last}"
    form = _BOUNDS.get(type(sign))
    return f"{name}: {form.format(value)}" if form and isinstance(value, (int, float)) else ""
