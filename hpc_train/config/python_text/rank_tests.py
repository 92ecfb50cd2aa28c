"""Conditions of a text that rank 0 alone meets, and those that all other ranks meet."""

from __future__ import annotations

import ast
from collections.abc import Sequence

# Of the object whose `is_global_zero` or `is_main_process` is asked.
OWNERS = ("is_global_zero", "is_main_process")
_MAIN = ("is_main_process", "is_main", "is_master", "main_process", "master_process")
_RANKS = ("rank", "global_rank", "process_index", "get_rank()")
_SEVERAL = ("world", "dist")  # in what asks whether there are several ranks
_LEAVES = (ast.Return, ast.Continue, ast.Break)


def asks_for_zero(test: ast.expr) -> bool:
    """`rank == 0`, `not rank`, `dist.get_rank() == 0`, `is_main_process()`, and nothing more."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_rank(test.operand) or _is_unequal(test.operand)
    if isinstance(test, ast.Call) and not test.args and not test.keywords:
        return _last_word(test.func) in _MAIN
    if isinstance(test, ast.Name | ast.Attribute):
        return _last_word(test) in (*_MAIN, *OWNERS)
    return _is_compared(test, ast.Eq, ast.Eq, 0) or _is_compared(test, ast.Lt, ast.Gt, 1)


def asks_for_others(test: ast.expr) -> bool:
    """`rank != 0`, `rank > 0`, `rank`, `not is_main`: also beside `world_size > 1 and`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        rest = [it for it in test.values if not asks_for_others(it)]
        several = [it for it in rest if any(word in ast.unparse(it) for word in _SEVERAL)]
        return rest == several and len(rest) == len(test.values) - 1
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not _is_rank(test.operand) and asks_for_zero(test.operand)
    return _is_rank(test) or _is_unequal(test)


def zero_of(test: ast.expr) -> str:
    """The condition that rank 0 alone meets, of either kind."""
    if isinstance(test, ast.BoolOp):
        test = next(it for it in test.values if asks_for_others(it))
    if asks_for_zero(test):
        return ast.unparse(test)
    if isinstance(test, ast.UnaryOp):
        return ast.unparse(test.operand)
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
    return f"{ast.unparse(next(it for it in sides if _is_rank(it)))} == 0"


def owner_asked(test: ast.expr) -> str:
    """`accelerator.is_main_process` of a test that asks it, also by `not`; else empty."""
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    return ast.unparse(asked) if isinstance(asked, ast.Attribute) and asked.attr in OWNERS else ""


def _is_rank(test: ast.expr) -> bool:
    return _last_word(test) in _RANKS


def _is_unequal(test: ast.expr) -> bool:
    return (
        _is_compared(test, ast.NotEq, ast.NotEq, 0)
        or _is_compared(test, ast.Gt, ast.Lt, 0)
        or _is_compared(test, ast.GtE, ast.LtE, 1)
    )


def _is_compared(test: ast.expr, first: type, second: type, number: int) -> bool:
    """Whether a rank is so compared with that number; the second is where that stands first."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    (operator,), left, right = test.ops, test.left, test.comparators[0]
    if isinstance(operator, first) and _is_rank(left):
        return _is_number(right, number)
    return isinstance(operator, second) and _is_rank(right) and _is_number(left, number)


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number and node.value is not False


def _last_word(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether what comes to the end of it surely goes on elsewhere."""
    return bool(body) and (isinstance(body[-1], _LEAVES) or ends_process(body[-1]))


def ends_process(node: ast.AST) -> bool:
    """Whether it is a call of `sys.exit` and the like."""
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("exit", "sys.exit", "os._exit")
