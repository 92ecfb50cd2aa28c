"""A class of a module that a config names as a text, where the class that gets it calls an object.

Only what the text of the class tells for sure: each use of the argument is followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpc_train.config.python_text.argument_values import ArgumentError
from hpc_train.config.python_text.class_kind import Located, locate
from hpc_train.config.python_text.default_types import defaults_of

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MAY_BE_TEXT = re.compile(r"\b(?:str|Literal)\b")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _CallOfText:
    holder: str  # the class
    line: int


def check_named_in_texts(
    arguments: Mapping[str, object],
    annotations: Mapping[str, str],
    found: Located,
    search_path: Sequence[str],
) -> None:
    """Refuse a text that names a class, and that is surely called as an object of that class.

    Args:
        found: The class that gets the arguments.

    Raises:
        ArgumentError: with the form in which the object is made.
    """
    texts = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str) and _DOTTED.fullmatch(value)
    }
    for name, value in texts.items():
        if _MAY_BE_TEXT.search(annotations.get(name, "")):
            continue
        named = locate(value, search_path)
        definition = named.definition if named is not None else None
        if not isinstance(definition, ast.ClassDef) or not _makes_callables(definition):
            continue
        if isinstance(defaults_of(found).get(name), str) or not (call := _sure_call(found, name)):
            continue
        message = f"is the text {value!r}, which {call.holder} calls (line {call.line})"
        raise ArgumentError(message, f"write {name}: {_form(value, definition)}", name)


def _makes_callables(definition: ast.ClassDef) -> bool:
    """Whether an object of that class may be called: it has a method for it, or a base may."""
    own = {it.name for it in definition.body if isinstance(it, _FUNCTIONS)}
    return bool(definition.bases) or "__call__" in own


def _form(value: str, definition: ast.ClassDef) -> str:
    """`{class_path: data.Scale, init_args: {k: ...}}`, with what has to be given."""
    needed: list[str] = []
    for method in definition.body:
        if isinstance(method, _FUNCTIONS) and method.name == "__init__":
            own = [it.arg for it in (*method.args.posonlyargs, *method.args.args)][1:]
            needed = own[: len(own) - len(method.args.defaults)]
            pairs = zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
            needed += [it.arg for it, default in pairs if default is None]
    given = ", ".join(f"{it}: ..." for it in needed)
    return f"{{class_path: {value}{f', init_args: {{{given}}}' if given else ''}}}"


def _sure_call(found: Located, name: str) -> _CallOfText | None:
    """Where the text is surely called; None where some use of it may make another thing of it."""
    definitions = found.names.definitions if found.names else {}
    reached, looked_at = [found.name], 0
    calls: list[_CallOfText] = []
    while looked_at < len(reached):
        holder = reached[looked_at]
        definition = definitions.get(holder)
        looked_at += 1
        if not isinstance(definition, ast.ClassDef) or definition.decorator_list:
            return None
        kept_as = _kept_as(definition, name)
        for node, parent, above in _mentions(definition, name):
            if isinstance(parent, ast.Call) and parent.func is node:
                if not parent.args or ast.unparse(node) not in kept_as:
                    return None  # a class may be wanted, of which an object is made there
                calls.append(_CallOfText(holder, parent.lineno))
            elif given_to := _given_to(node, parent, above, name, definitions):
                reached += [it for it in [given_to] if it not in reached]
            elif not _leaves_it(node, parent, name):
                return None
    return calls[0] if calls else None


def _kept_as(definition: ast.ClassDef, name: str) -> list[str]:
    """Under which names of its own a class keeps the very argument."""
    text = ast.unparse(definition)
    is_kept = f"self.{name} = {name}" in text and f"def {name}(" not in text
    own = [f"self.{name}"] if is_kept else []
    return [*own, f"self.hparams.{name}"] if "save_hyperparameters()" in text else own


def _mentions(
    definition: ast.ClassDef, name: str
) -> Iterator[tuple[ast.AST, ast.AST, ast.AST | None]]:
    """Each use of the argument, with what it is a part of, and what that is a part of."""
    parents = {
        id(below): node for node in ast.walk(definition) for below in ast.iter_child_nodes(node)
    }
    for node in ast.walk(definition):
        # A text of that name is for setattr and the like.
        if _is_mention(node, name) or (isinstance(node, ast.Constant) and node.value == name):
            parent = parents[id(node)]
            yield node, parent, parents.get(id(parent))


def _is_mention(node: ast.AST, name: str) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    return ast.unparse(node) in (name, f"self.{name}", f"self.hparams.{name}")


def _leaves_it(node: ast.AST, parent: ast.AST, name: str) -> bool:
    """Whether it is only kept under its own name, or asked whether it is there."""
    if isinstance(parent, ast.Assign):
        kept = [ast.unparse(it) for it in parent.targets] == [f"self.{name}"]
        return kept and _is_mention(parent.value, name)
    if isinstance(parent, (ast.If, ast.IfExp)):
        return parent.test is node
    if isinstance(parent, ast.Compare):
        with_none = [ast.unparse(it) for it in parent.comparators] == ["None"]
        return with_none and isinstance(parent.ops[0], (ast.Is, ast.IsNot))
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)


def _given_to(
    node: ast.AST,
    parent: ast.AST,
    above: ast.AST | None,
    name: str,
    definitions: Mapping[str, ast.ClassDef | ast.FunctionDef],
) -> str:
    """The class of the same file that gets it as an argument of the same name; else empty."""
    call = above if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return ""
    definition = definitions.get(call.func.id)
    taken = list(_taken_by(definition)) if isinstance(definition, ast.ClassDef) else []
    if isinstance(parent, ast.keyword):
        is_same = parent.arg == name and name in taken
    else:
        number = next((n for n, it in enumerate(call.args) if it is node), len(taken))
        is_plain = not any(isinstance(it, ast.Starred) for it in call.args)
        is_same = is_plain and taken[number : number + 1] == [name]
    return call.func.id if is_same else ""


def _taken_by(definition: ast.ClassDef) -> Iterator[str]:
    """The arguments of its own `__init__`, in order."""
    for method in definition.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            given = method.args
            yield from [it.arg for it in (*given.posonlyargs, *given.args, *given.kwonlyargs)][1:]
