"""The name of the file that a call of torch.save writes, as far as a script's text tells it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import PurePosixPath

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 6
_ANY = "*"
# What a script calls its parsed arguments.
_ARGUMENTS = re.compile(r"(?:\w+\.)*(?:args|opts?|options|flags|hparams|params|arguments|FLAGS)")
_SAME = ("str", "Path", "pathlib.Path", "os.fspath", "os.path.abspath", "os.path.expanduser")
_FIELD = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-z]")


class SavedFiles:
    """Finds the names of files in one text.

    Args:
        tree: The script, or a module of its own.
        given: The texts of its parsed arguments, by name.
    """

    def __init__(self, tree: ast.Module, given: Mapping[str, str]) -> None:
        self._tree, self._given = tree, given
        self._nodes = [*ast.walk(tree)]
        made = [it for it in self._nodes if isinstance(it, ast.Assign)]
        self._parsed = {ast.unparse(it.targets[0]) for it in made if _is_parsed(it.value)}
        self._around: dict[int, ast.AST] = {}  # the innermost function of what stands in one
        for function in (it for it in self._nodes if isinstance(it, _FUNCTIONS)):
            self._around |= {id(it): function for it in ast.walk(function) if it is not function}

    def pattern(self, call: ast.Call) -> str:
        """With `*` for what changes in the name; empty where the text does not tell it.

        Args:
            call: Of torch.save, or of what is called as it is.
        """
        written = [*call.args[1:2], *(it.value for it in call.keywords if it.arg == "f")]
        said = self._said(written[0], 0) if written else ""
        path = PurePosixPath(said).as_posix() if said else ""
        # Of a folder that is not known it is not told how many there are.
        return path if path not in ("", ".") and path[0] != _ANY and "**" not in path else ""

    def _said(self, node: ast.expr, depth: int) -> str:
        """Its text; `*` for one that is not told."""
        below = depth + 1
        if depth > _DEEPEST:
            return _ANY
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._said(it, below) for it in node.values)
        if isinstance(node, ast.FormattedValue):
            return _ANY if node.format_spec else self._said(node.value, below)
        if isinstance(node, ast.BinOp):
            return self._operation(node, below)
        if isinstance(node, ast.Call):
            return self._made(node, below)
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            is_argument = owner in self._parsed or _ARGUMENTS.fullmatch(owner)
            if is_argument and node.attr in self._given:
                return self._given[node.attr]
            return self._only_default(node.attr)
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1:  # of a loop over it
            return self._said(node.elts[0], below)
        return self._named(node, below) if isinstance(node, ast.Name) and node.id else _ANY

    def _operation(self, node: ast.BinOp, depth: int) -> str:
        left = self._said(node.left, depth)
        if isinstance(node.op, ast.Mod):
            return _PERCENT.sub(_ANY, left)
        right = self._said(node.right, depth)
        if isinstance(node.op, ast.Div):
            return (PurePosixPath(left) / right).as_posix()
        is_text = isinstance(node.op, ast.Add) and not _is_number(node.right)
        return left + right if is_text else _ANY

    def _made(self, call: ast.Call, depth: int) -> str:
        name = ast.unparse(call.func)
        given = [self._said(it, depth) for it in call.args]
        if name == "os.path.join" and given:
            return PurePosixPath(*given).as_posix()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
            text, values = self._said(call.func.value, depth), iter(given)
            return _FIELD.sub(lambda it: next(values, _ANY) if it[0] == "{}" else _ANY, text)
        return given[0] if name in _SAME and len(given) == 1 else _ANY

    def _named(self, node: ast.Name, depth: int) -> str:
        function = self._around.get(id(node))
        scope = [*ast.walk(function)] if function is not None else self._nodes
        for nodes in (scope, self._nodes):
            if bound := [*_values(node.id, nodes)]:
                # Of several that stand above it the nearest.
                above = [it for it in bound if it[0] <= node.lineno] or bound[:1]
                return self._said(max(above, key=itemgetter(0))[1], depth)
        if isinstance(function, ast.FunctionDef):
            places = [it.arg for it in function.args.args]
            if node.id in places and (texts := {*self._handed(function, node.id, depth)} - {_ANY}):
                return texts.pop() if len(texts) == 1 else _ANY
        return self._only_default(node.id)

    def _handed(self, function: ast.FunctionDef, name: str, depth: int) -> Iterator[str]:
        """What the function's calls in this text give it as an argument."""
        place = [it.arg for it in function.args.args].index(name)
        for call in (it for it in self._nodes if isinstance(it, ast.Call)):
            if ast.unparse(call.func) == function.name:
                named = [it.value for it in call.keywords if it.arg == name]
                written = [*call.args[place : place + 1], *named]
                default = self._only_default(name)
                yield self._said(written[0], depth) if written else default

    def _only_default(self, name: str) -> str:
        """The one text that functions have by default for it, or that the name is set to."""
        found = {*_defaults(name, self._nodes)}
        return found.pop() if len(found) == 1 else _ANY


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def _values(name: str, nodes: list[ast.AST]) -> Iterator[tuple[int, ast.expr]]:
    """The line and what a statement binds a name to: `with open(path) as f` as well."""
    for node in nodes:
        if isinstance(node, ast.Assign) and [ast.unparse(it) for it in node.targets] == [name]:
            yield node.lineno, node.value
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            opened = node.context_expr
            is_it = ast.unparse(node.optional_vars) == name
            if is_it and isinstance(opened, ast.Call) and ast.unparse(opened.func) == "open":
                yield from ((it.lineno, it) for it in opened.args[:1])
        elif isinstance(node, ast.For) and ast.unparse(node.target) == name:
            # What is told is one element alone.
            is_list = isinstance(node.iter, ast.Name | ast.List)
            yield node.lineno, node.iter if is_list else ast.Name("")


def _defaults(name: str, nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        values: list[ast.expr] = []
        if isinstance(node, _FUNCTIONS):
            arguments = node.args.args
            behind = arguments[len(arguments) - len(node.args.defaults) :]
            pairs = zip(behind, node.args.defaults, strict=True)
            values = [value for it, value in pairs if it.arg == name]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            values = [node.value]
        for value in values:
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            yield str(value.value) if is_text and isinstance(value, ast.Constant) else _ANY


def _is_parsed(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".parse_args")
