"""Commands that a script starts, as far as they stand in its text: in the call, or by a name."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from hpc_train.config.python_text.harmless_code import imported_names

CALLS = re.compile(
    r"os\.(system|popen)|subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)"
)
_OF_PYTHON = "python"  # in the place of sys.executable
_UNKNOWN = "X"  # in the place of a word that the text does not tell
_MOST_NAMES = 4  # that stand for names that stand for names
_MOST_VALUES = 6  # of a name
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Command = str | list[str]


def written_command(node: ast.expr) -> Command:
    """A command as far as it stands in the text."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_word(it) for it in node.elts]
    if isinstance(node, ast.JoinedStr):
        return "".join(_word(it) for it in node.values)
    return _word(node) if isinstance(node, ast.Constant) else ""


def started_commands(tree: ast.Module) -> Iterator[tuple[ast.Call, Command]]:
    """Each call of the script that starts another program, with what it may start.

    A name for the command stands for each of its values, with what `+=` adds to them.
    """
    names = imported_names(tree)
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        first, dot, rest = ast.unparse(call.func).partition(".")
        words = {it.arg: it.value for it in call.keywords}
        given = call.args[0] if call.args else words.get("args", words.get("command"))
        if given is not None and CALLS.fullmatch(f"{names.get(first, first)}{dot}{rest}"):
            yield from ((call, it) for it in _CommandNames(tree, call).commands(given))


class _CommandNames:
    """What names mean at a call: those of the function around it, else those of the module."""

    def __init__(self, tree: ast.Module, call: ast.Call) -> None:
        around = [it for it in ast.walk(tree) if isinstance(it, _FUNCTIONS) and _holds(it, call)]
        inner: ast.AST = around[-1] if around else tree
        self._scopes = [list(_own(inner)), list(_own(tree))]
        self._arguments = {
            it.arg for of in around for it in ast.walk(of) if isinstance(it, ast.arg)
        }

    def commands(self, node: ast.expr, names: int = _MOST_NAMES) -> list[Command]:
        """What it may be; empty where the text does not tell."""
        if isinstance(node, ast.Name):
            return self._of_name(node.id, names - 1) if names else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            ends = self.commands(node.right, names) or [""]
            return [_joined(it, end) for it in self.commands(node.left, names) for end in ends]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.commands(node.left, names)
        if isinstance(node, ast.Call):
            return self._of_call(node, names)
        if isinstance(node, ast.List | ast.Tuple):
            return [[it for part in node.elts for it in self._words(part, names)]]
        if isinstance(node, ast.JoinedStr):
            return ["".join(self._text(it, names) for it in node.values)]
        command = written_command(node)
        return [command] if command else []

    def _of_name(self, name: str, names: int) -> list[Command]:
        """Each value that the nearest scope gives it, with what is added there behind it."""
        if name in self._arguments:
            return []
        for scope in self._scopes:
            values = [it for it in scope if isinstance(it, ast.Assign) and _is_to(it, name)]
            if values:
                found = [
                    it for of in values[:_MOST_VALUES] for it in self.commands(of.value, names)
                ]
                more = self._added(scope, name, names)
                return [functools.reduce(_joined, more, it) for it in found]
        return []

    def _added(self, scope: list[ast.AST], name: str, names: int) -> list[Command]:
        """Of `cmd += [...]`, `cmd.extend([...])` and `cmd.append(...)`."""
        added: list[Command] = []
        for node in scope:
            part: ast.expr | None = None
            if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
                part = node.value
            elif isinstance(node, ast.Call) and node.args:
                called = ast.unparse(node.func)
                part = node.args[0] if called == f"{name}.extend" else None
                if called == f"{name}.append":
                    part = ast.List([node.args[0]], ast.Load())
            added += self.commands(part, names)[:1] if part is not None else []
        return added

    def _of_call(self, call: ast.Call, names: int) -> list[Command]:
        """`" ".join(cmd)`, `shlex.split(text)`, `text.split()`, `list(map(str, cmd))`."""
        called = ast.unparse(call.func)
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = call.args[-1] if call.args else None
        if called in ("shlex.split", "list", "tuple", "map") and given is not None:
            found = self.commands(given, names)
            is_split = called == "shlex.split"
            return [it.split() if is_split and isinstance(it, str) else it for it in found]
        if (called == "shlex.join" or called.endswith(".join")) and given is not None:
            return [" ".join(it) for it in self.commands(given, names) if isinstance(it, list)]
        if called.endswith((".split", ".format", ".strip")) and of is not None:
            is_split, found = called.endswith(".split"), self.commands(of, names)
            return [it.split() if is_split and isinstance(it, str) else it for it in found]
        return []

    def _words(self, node: ast.expr, names: int) -> list[str]:
        if isinstance(node, ast.Starred):
            found = self.commands(node.value, names)
            return found[0] if found and isinstance(found[0], list) else [_UNKNOWN]
        return [self._text(node, names)]

    def _text(self, node: ast.expr, names: int) -> str:
        """One word, or a part of one."""
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        if _word(inner) != _UNKNOWN:
            return _word(inner)
        found = self.commands(inner, names)
        return found[0] if found and isinstance(found[0], str) else _UNKNOWN


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope in their order, without those of functions in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield from _own(child)


def _holds(function: ast.AST, call: ast.Call) -> bool:
    return any(it is call for it in ast.walk(function))


def _is_to(statement: ast.Assign, name: str) -> bool:
    return [ast.unparse(it) for it in statement.targets] == [name]


def _joined(first: Command, second: Command) -> Command:
    """Both, where both are texts, or lists."""
    if isinstance(first, str):
        return first + second if isinstance(second, str) else first
    return [*first, *(second if isinstance(second, list) else [])]


def _word(node: ast.expr) -> str:
    if ast.unparse(node) == "sys.executable":
        return _OF_PYTHON
    return str(node.value) if isinstance(node, ast.Constant) else _UNKNOWN
