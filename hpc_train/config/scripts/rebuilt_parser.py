"""A script's argparse parser, made anew from its text as far as it surely refuses the same.

What the text does not tell is left out where that makes it take more: choices that are computed,
a type of the script's own, what is required under a condition.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from typing import Any, NoReturn

from hpc_train.config.scripts.parser_of_text import Added, Parsed

_TYPES = {"int": int, "float": float, "str": str}
_ACTIONS = (
    *("store", "store_true", "store_false", "store_const", "append", "append_const"),
    *("count", "extend"),
)
_NEED_CONST = ("store_const", "append_const")
_COUNTS = {
    "REMAINDER": argparse.REMAINDER,
    "OPTIONAL": argparse.OPTIONAL,
    "ZERO_OR_MORE": argparse.ZERO_OR_MORE,
    "ONE_OR_MORE": argparse.ONE_OR_MORE,
}
_CHANGES = ("append", "extend", "insert", "update", "add", "remove", "pop", "clear", "setdefault")
_WRAPS = ("list", "sorted", "tuple", "set")


class OpenError(Exception):
    """The text does not tell what the parser takes."""


class RefusedError(Exception):
    """The parser refuses the arguments, in these words."""


class RebuiltParser(argparse.ArgumentParser):
    """A parser that prints nothing and does not end the program.

    Attributes:
        names: Of the attributes that its arguments get.
        known: Its options.
        calls: That add its arguments.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(**settings)
        self.names: set[str] = set()
        self.known: list[str] = []
        self.calls: list[ast.Call] = []
        self._has_conditional = False

    def error(self, message: str) -> NoReturn:
        """Raise what it would say."""
        raise RefusedError(message)

    def refusal(self, arguments: Sequence[str]) -> str:
        """What it says of these; empty where it takes them, or a run's own may."""
        try:
            self.parse_args([*arguments])
        except (RefusedError, argparse.ArgumentError) as error:
            said = str(error)
            # Of two options that begin with it one may not be there.
            return "" if self._has_conditional and said.startswith("ambiguous") else said
        return ""

    def take(self, added: Added, tree: ast.Module) -> None:
        """Add what a call adds.

        Raises:
            OpenError: the text does not tell what that is.
        """
        flags = [it.value if isinstance(it, ast.Constant) else None for it in added.call.args]
        if not flags or not all(isinstance(it, str) for it in flags):
            raise OpenError
        options = _options(added.call, tree)
        names = [str(it) for it in flags]
        is_option = names[0].startswith("-")
        if added.conditional:
            if not is_option:
                raise OpenError
            options.pop("required", None)
            self._has_conditional = True
        if is_option:
            options.pop("metavar", None)  # of a positional it is named where that lacks
        try:
            self.names.add(self.add_argument(*names, **options).dest)
        except (TypeError, ValueError, argparse.ArgumentError) as error:
            raise OpenError from error
        self.known += [it for it in names if it.startswith("-")]
        self.calls.append(added.call)


def rebuilt(parsed: Parsed, tree: ast.Module) -> RebuiltParser:
    """The parser that a script parses its command line by.

    Raises:
        OpenError: the text does not tell what it takes.
    """
    settings: dict[str, Any] = dict(parsed.parser.settings)
    try:
        parser = RebuiltParser(settings)
    except (TypeError, ValueError) as error:
        raise OpenError from error
    for added in parsed.parser.added:
        parser.take(added, tree)
    return parser


def _options(call: ast.Call, tree: ast.Module) -> dict[str, Any]:
    written = {word.arg: word.value for word in call.keywords}
    if None in written:
        raise OpenError
    options: dict[str, Any] = {"default": argparse.SUPPRESS}
    if "action" in written:
        options["action"] = _action(written["action"], tree)
    if "nargs" in written:
        options["nargs"] = _count(written["nargs"])
    if "dest" in written:
        options["dest"] = _literal(written["dest"])
    for name, kinds in (("required", bool), ("metavar", str)):
        value = written.get(name)
        if isinstance(value, ast.Constant) and isinstance(value.value, kinds):
            options[name] = value.value
    if options.get("action") in _NEED_CONST:
        options["const"] = None
    kind = ast.unparse(written["type"]) if "type" in written else "str"
    if kind in _TYPES and kind != "str":
        options["type"] = _TYPES[kind]
    # Choices are of what a type makes of the text.
    choices = _choices(written["choices"], tree) if "choices" in written else None
    if choices is not None and kind in _TYPES:
        options["choices"] = choices
    return options


def _action(node: ast.expr, tree: ast.Module) -> Any:
    """The action, or one that takes as many words."""
    if isinstance(node, ast.Constant):
        if node.value in ("version", "help"):
            return "store_true"
        if node.value in _ACTIONS:
            return node.value
        raise OpenError
    name = ast.unparse(node)
    if name.rpartition(".")[2] == "BooleanOptionalAction":
        return argparse.BooleanOptionalAction
    made = [it for it in ast.walk(tree) if isinstance(it, ast.ClassDef) and it.name == name]
    if len(made) != 1 or [ast.unparse(it) for it in made[0].bases] not in (
        ["argparse.Action"],
        ["Action"],
    ):
        raise OpenError
    if any(isinstance(it, ast.FunctionDef) and it.name == "__init__" for it in made[0].body):
        raise OpenError
    return "store"


def _count(node: ast.expr) -> Any:
    name = ast.unparse(node).rpartition(".")[2]
    return _COUNTS[name] if name in _COUNTS else _literal(node)


def _choices(node: ast.expr, tree: ast.Module) -> list[Any] | None:
    """What may be given; None where the text does not tell."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in _WRAPS and len(node.args) == 1 and not node.keywords:
            return _choices(node.args[0], tree)
        of = (
            node.func.value
            if name.endswith(".keys") and isinstance(node.func, ast.Attribute)
            else None
        )
        return _choices(of, tree) if of is not None and not node.args else None
    if isinstance(node, ast.Name):
        value = _constant(node.id, tree)
        return _choices(value, tree) if value is not None else None
    elements = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    if not isinstance(elements, list) or not all(isinstance(it, ast.Constant) for it in elements):
        return None
    return [it.value for it in elements if isinstance(it, ast.Constant)]


def _constant(name: str, tree: ast.Module) -> ast.expr | None:
    """What the one statement gives a name that nothing else binds or changes."""
    given: ast.expr | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            return None
        if isinstance(node, ast.Attribute | ast.Subscript) and ast.unparse(node.value) == name:
            is_changed = isinstance(node, ast.Attribute) and node.attr in _CHANGES
            if is_changed or not isinstance(node.ctx, ast.Load):
                return None
    stored = [it for it in ast.walk(tree) if isinstance(it, ast.Name) and it.id == name]
    for it in tree.body:
        if isinstance(it, ast.Assign) and [ast.unparse(to) for to in it.targets] == [name]:
            given = it.value
    return given if sum(not isinstance(it.ctx, ast.Load) for it in stored) == 1 else None


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise OpenError from error
