"""The names that a model's class logs, those with a part that is known only as it runs included."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from hpc_train.config.python_text.method_signatures import methods_of

_ANY = "(?s:.*)"


@dataclass(frozen=True)
class Logged:
    """A name that is logged.

    Attributes:
        shown: How a message has it: `{stage}_dice` where the part is not known.
        pattern: What it may be as it runs, as an expression.
        is_open: Whether `shown` has a part that is not known.
    """

    shown: str
    pattern: str
    is_open: bool = False


def texts_logged(call: ast.Call, definition: ast.ClassDef) -> list[Logged] | None:
    """What a call of `self.log` or `self.log_dict` logs; None where its text does not tell.

    Of `f"{stage}_dice"`, where stage is an argument of the method, the names that the calls of the
    method give are shown; what other code calls it with is in the pattern.
    """
    named = [it.value for it in call.keywords if it.arg in ("name", "dictionary")]
    first = next(iter([*call.args[:1], *named]), None)
    keys: list[ast.expr | None] = [first]
    if isinstance(first, ast.Dict):
        keys = list(first.keys)
    elif isinstance(first, ast.DictComp):
        keys = [first.key]
    found: list[Logged] = []
    for key in keys:
        if key is None or (texts := _texts(key)) is None:
            return None
        found += texts
        if isinstance(key, (ast.JoinedStr, ast.BinOp)):
            given = _as_called(key, definition)
            found = [*found[: -len(texts)], *(Logged(it, texts[0].pattern) for it in given)]
            found += [] if given else texts
    return found


def _texts(node: ast.expr) -> list[Logged] | None:
    """What a text may be, by how it is written; None where that does not tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [Logged(node.value, re.escape(node.value))]
    if isinstance(node, ast.IfExp):
        both = [_texts(it) for it in (node.body, node.orelse)]
        return None if None in both else [it for texts in both for it in texts or []]
    parts = list(_parts(node))
    if not any(isinstance(it, str) for it in parts):
        return None
    shown = "".join(it if isinstance(it, str) else f"{{{ast.unparse(it)}}}" for it in parts)
    pattern = "".join(re.escape(it) if isinstance(it, str) else _ANY for it in parts)
    return [Logged(shown, pattern, is_open=_ANY in pattern)]


def _parts(node: ast.expr) -> Iterator[str | ast.expr]:
    """The parts of `f"{stage}_dice"` and `stage + "_dice"`: texts, and what gives one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from itertools.chain.from_iterable(map(_parts, node.values))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node.value if isinstance(node, ast.FormattedValue) else node


def _as_called(node: ast.expr, definition: ast.ClassDef) -> list[str]:
    """The names that the class's own calls of the method make of it; empty where one is unsure."""
    parts = list(_parts(node))
    open_parts = {ast.unparse(it) for it in parts if not isinstance(it, str)}
    method = next((it for it in methods_of(definition).values() if node in ast.walk(it)), None)
    if method is None or len(open_parts) != 1:
        return []
    (name,) = open_parts
    arguments = [it.arg for it in (*method.args.args, *method.args.kwonlyargs)]
    stored = {it.id for it in ast.walk(method) if _is_stored(it)}
    if name not in {*arguments} - stored or not (
        values := _given(method.name, name, arguments, definition)
    ):
        return []
    return ["".join(it if isinstance(it, str) else value for it in parts) for value in values]


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _given(method: str, name: str, arguments: list[str], definition: ast.ClassDef) -> list[str]:
    """The texts that the class calls its method with; empty where one is no plain text."""
    values = []
    for call in (it for it in ast.walk(definition) if isinstance(it, ast.Call)):
        if ast.unparse(call.func) != f"self.{method}":
            continue
        by_place = dict(zip(arguments[1:], call.args, strict=False))
        by_name = {it.arg: it.value for it in call.keywords}
        value = by_name.get(name, by_place.get(name))
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            return []
        values.append(value.value)
    return list(dict.fromkeys(values))
