"""What a class refuses by its text: each `if ...: raise` of its `__init__`, worked out on values.

Nothing of it is run: what the text does not tell is unknown, and an unknown test refuses nothing.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_UNKNOWN: Any = object()
_OPERATORS: Mapping[type, Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda value, many: value in many,
    ast.NotIn: lambda value, many: value not in many,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}


@dataclass(frozen=True)
class RefusedValue:
    """What a class refuses.

    Attributes:
        test: The condition, as it is written.
        said: The words of the error; empty where the text does not tell them.
        choices: Of which the value has to be one; empty where the condition is another.
        line: Of the condition.
    """

    test: str
    said: str
    choices: tuple[Any, ...]
    line: int


class _RefusedValueError(Exception):
    def __init__(self, refusal: RefusedValue) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def refusal_of(
    definition: ast.ClassDef, arguments: Mapping[str, Any], filled_in: Sequence[str] = ()
) -> RefusedValue | None:
    """The first error that `__init__`, and methods it calls, raise on these arguments; or None.

    Args:
        filled_in: Arguments whose values are not known where they are not among `arguments`.
    """
    methods = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
    values: dict[str, Any] = {}
    for statement in definition.body:
        _assign(statement, values, prefix="self.")
    if "__init__" not in methods:
        return None
    try:
        given = {**dict.fromkeys(filled_in, _UNKNOWN), **arguments}
        _call(methods["__init__"], (), given, values, methods)
    except (_RefusedValueError, RecursionError) as error:
        return error.refusal if isinstance(error, _RefusedValueError) else None
    return None


def _call(
    function: ast.FunctionDef,
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
    values: dict[str, Any],
    methods: Mapping[str, ast.FunctionDef],
) -> None:
    """Work through a method; what it binds to `self` is kept in `values`."""
    given = function.args
    names = [it.arg for it in (*given.posonlyargs, *given.args)][1:]
    defaults = dict(zip(reversed(names), reversed(given.defaults), strict=False))
    defaults |= {
        it.arg: default
        for it, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default
    }
    own = {name: _worth(value, {}) for name, value in defaults.items()}
    own |= {**_of_self(values), **dict(zip(names, positional, strict=False)), **keywords}
    _run(function.body, own, methods)
    values.update(_of_self(own))


def _of_self(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name.startswith("self.")}


def _run(
    body: Sequence[ast.stmt], values: dict[str, Any], methods: Mapping[str, ast.FunctionDef]
) -> bool:
    """Work through statements; false where they do not go on."""
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Raise)):
            return False
        test = _worth(statement.test, values) if isinstance(statement, ast.If) else _UNKNOWN
        if isinstance(statement, ast.If) and test is not _UNKNOWN:
            branch = statement.body if test else statement.orelse
            if branch and isinstance(branch[0], ast.Raise):
                raise _RefusedValueError(_refusal(statement.test, branch[0], values))
            if not _run(branch, values, methods):
                return False
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            _assign(statement, values)
        elif isinstance(statement, ast.Expr):
            _call_own(statement.value, values, methods)
        else:
            _forget(statement, values)
            if _may_return(statement):
                return False
    return True


def _call_own(
    call: ast.expr, values: dict[str, Any], methods: Mapping[str, ast.FunctionDef]
) -> None:
    """Work through `self.method(...)`, where it is a method of the class."""
    if isinstance(call, ast.Call) and not call.keywords:
        method = methods.get(_name(call.func).removeprefix("self."))
        if method is not None:
            _call(method, [_worth(it, values) for it in call.args], {}, values, methods)


def _may_return(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _assign(statement: ast.stmt, values: dict[str, Any], prefix: str = "") -> None:
    value = getattr(statement, "value", None)
    worth = _worth(value, values) if isinstance(value, ast.expr) else _UNKNOWN
    _forget(statement, values)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    if len(targets) == 1 and (name := _name(targets[0])):
        values[prefix + name] = worth


def _forget(statement: ast.stmt, values: dict[str, Any]) -> None:
    for node in ast.walk(statement):
        if isinstance(getattr(node, "ctx", None), ast.Store) and isinstance(node, ast.expr):
            values.pop(_name(node), None)


def _name(node: ast.expr) -> str:
    """`x` or `self.x`; empty for any other expression."""
    text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return text if text.removeprefix("self.").isidentifier() else ""


def _worth(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """What an expression is, or unknown; a dictionary is the list of its keys."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return values.get(_name(node), _UNKNOWN)
    if isinstance(node, ast.BoolOp):
        return _either([_worth(it, values) for it in node.values], isinstance(node.op, ast.Or))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:  # a < b < c is a < b and b < c
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        links = [ast.Compare(left, [sign], [right]) for left, sign, right in pairs]
        return _either([_worth(it, values) for it in links], wanted=False)
    operation: Any = None
    operands: Sequence[ast.expr | None] = ()
    if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
        operands = node.keys if isinstance(node, ast.Dict) else node.elts
        operation = lambda *items: list(items)  # noqa: E731
    elif isinstance(node, ast.Compare):
        operation, operands = _OPERATORS[type(node.ops[0])], (node.left, *node.comparators)
    elif isinstance(node, ast.BinOp):
        operation, operands = _OPERATORS.get(type(node.op)), (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        operation, operands = _OPERATORS.get(type(node.op)), (node.operand,)
    found = [_UNKNOWN if it is None else _worth(it, values) for it in operands]
    try:
        return operation(*found) if operation and not _has_unknown(found) else _UNKNOWN
    except (TypeError, ValueError, ArithmeticError):
        return _UNKNOWN


def _either(found: Sequence[Any], wanted: bool) -> Any:
    """Of `or` (wanted) and `and`: the first that decides, where no unknown one may."""
    for value in found:
        if value is _UNKNOWN or bool(value) is wanted:
            return value
    return found[-1]


def _has_unknown(found: Sequence[Any]) -> bool:
    return any(it is _UNKNOWN for it in found)


def _refusal(test: ast.expr, error: ast.Raise, values: Mapping[str, Any]) -> RefusedValue:
    choices: Any = ()
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
        choices = _worth(test.comparators[0], values)
    said = ""
    if isinstance(error.exc, ast.Call) and error.exc.args:
        first = error.exc.args[0]
        parts = first.values if isinstance(first, ast.JoinedStr) else [first]
        said = " ".join("".join(_part(it, values) for it in parts).split())
    return RefusedValue(ast.unparse(test), said, tuple(choices), test.lineno)


def _part(node: ast.expr, values: Mapping[str, Any]) -> str:
    value = _worth(node.value if isinstance(node, ast.FormattedValue) else node, values)
    return "..." if value is _UNKNOWN else str(value)
