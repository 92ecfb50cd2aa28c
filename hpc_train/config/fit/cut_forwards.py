"""A method whose values are all made under torch.no_grad(), so that nothing learns of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from hpc_train.config.python_text.method_signatures import own_nodes

NO_GRAD = ("torch.no_grad", "torch.inference_mode")


def cut_at(method: ast.FunctionDef, is_cut: Callable[[ast.expr], bool]) -> int:
    """The line of it; 0 where a value may have a gradient.

    Args:
        is_cut: Whether an expression, without its call, stands for no_grad or inference_mode.
    """
    nodes = list(own_nodes(method.body))
    returns = [it for it in nodes if isinstance(it, ast.Return)]
    if not returns or any(isinstance(it, ast.Yield | ast.YieldFrom) for it in nodes):
        return 0
    if method.decorator_list:
        lines = [it.lineno for it in method.decorator_list if is_cut(_called(it))]
        is_all = len(lines) == len(method.decorator_list)
        return lines[0] if is_all and _are_made_in(method.body, method, returns) else 0
    for statement in method.body:
        if isinstance(statement, ast.With) and _cuts(statement, is_cut):
            return statement.lineno if _are_made_in(statement.body, method, returns) else 0
    return 0


def _cuts(statement: ast.With, is_cut: Callable[[ast.expr], bool]) -> bool:
    given = [it.context_expr for it in statement.items]
    return any(isinstance(it, ast.Call) and not it.args and is_cut(it.func) for it in given)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) and not node.args else node


def _are_made_in(
    body: Sequence[ast.stmt], method: ast.FunctionDef, returns: Sequence[ast.Return]
) -> bool:
    """Whether what is returned is computed in these lines alone."""
    inside = {id(it) for it in own_nodes(body)}

    def is_made(value: ast.expr | None, at: ast.AST) -> bool:
        if isinstance(value, ast.Name):
            return _is_stored_in(value.id, method, inside)
        return value is not None and id(at) in inside and is_computed(value)

    return all(is_made(it.value, it) for it in returns)


def _is_stored_in(name: str, method: ast.FunctionDef, inside: set[int]) -> bool:
    """Whether each assignment to a name is one of something computed in these lines."""
    stored = [
        it
        for it in ast.walk(method)
        if isinstance(it, ast.Name) and it.id == name and not isinstance(it.ctx, ast.Load)
    ]
    made = [
        it
        for it in ast.walk(method)
        if isinstance(it, ast.Assign)
        and [target.id for target in it.targets if isinstance(target, ast.Name)] == [name]
        and id(it) in inside
        and is_computed(it.value)
    ]
    return bool(stored) and len(stored) == len(made)


def is_computed(value: ast.expr) -> bool:
    """Whether it is made where it stands: a parameter that is only read keeps its gradient."""
    if isinstance(value, ast.BinOp):
        return True
    if not isinstance(value, ast.Call):
        return False
    on = value.func.value if isinstance(value.func, ast.Attribute) else None
    return bool(value.args) or isinstance(on, ast.Call | ast.BinOp)
