"""The argparse parser of a script, followed through its text: nothing of the script is run.

The top level is gone through in its order, and the script's own functions where they are called,
so that a parser which a function returns, or is given, is known as well as its parents and groups.
What other code may change is open: nothing is said of it. Source: Python's manual, argparse.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

from hpc_train.config.python_text.harmless_code import imported_names, is_of_main
from hpc_train.config.python_text.method_signatures import own_nodes

_PARSER = "argparse.ArgumentParser"
_GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
_HARMLESS = (
    *("set_defaults", "get_default", "print_help", "print_usage", "format_help", "format_usage"),
    *("error", "exit"),
)
_TEXTS = ("prog", "usage", "description", "epilog")  # the first arguments, in this order
_OF_FORM = (*_TEXTS, "formatter_class", "argument_default")
_SETTINGS = ("add_help", "allow_abbrev", "conflict_handler")
_ENDS = ("exit", "sys.exit", "quit", "os._exit", "os.abort")
_CATCH_ENDS = ("SystemExit", "BaseException")
_PASS_ON = ("record", "no_grad", "inference_mode")  # decorators that call what they are given
_READ = ("print", "isinstance", "type", "repr", "str", "argcomplete.autocomplete")
_DEEPEST = 6
_MOST_CALLS = 300


class _CommandLine:
    """What `parse_args` takes where it is given None."""


_LINE = _CommandLine()


@dataclass(frozen=True)
class Added:
    """One `add_argument`; conditional where a run may not come to it, or more than once."""

    call: ast.Call
    conditional: bool


@dataclass(eq=False)
class TextParser:
    """A parser as far as the text tells; open where other code may add to it."""

    settings: dict[str, object] = field(default_factory=dict)
    added: list[Added] = field(default_factory=list)
    is_open: bool = False
    not_followed: bool = False  # code that is not followed may add to it at any time


@dataclass(frozen=True)
class _GroupOf:
    parser: TextParser
    conditional: bool


@dataclass(frozen=True)
class Parsed:
    """A call of `parse_args`, and the parser as it is then; sure where each run comes to it."""

    parser: TextParser
    is_sure: bool
    origin: TextParser = field(repr=False)


_Value = TextParser | _GroupOf | ast.FunctionDef | _CommandLine | None
_Names = dict[str, _Value]


@lru_cache(maxsize=4)  # several checks and notes ask of the same script
def parsed_in(tree: ast.Module) -> tuple[Parsed, ...]:
    """Each command line that the script parses, in its order; none where the text does not tell.

    Returns:
        One for each call of `parse_args` that it is known to come to, whose parser is not open.
    """
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if "parse_args" not in names or changes_line(tree):
        return ()
    followed = _Followed(tree)
    followed.run()
    return tuple(followed.parsed)


def changes_line(tree: ast.Module) -> bool:
    """Whether it may change `sys.argv`: it is only sliced, read or handed on by others."""
    read: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            read.add(id(node.value))
        elif isinstance(node, ast.Call):
            read |= {id(it) for it in node.args}
        elif isinstance(node, ast.Compare | ast.FormattedValue):
            read |= {id(it) for it in ast.iter_child_nodes(node)}
    taken = [it for it in ast.walk(tree) if isinstance(it, ast.ImportFrom) and it.module == "sys"]
    if any(it.name == "argv" for node in taken for it in node.names):
        return True
    every = [it for it in ast.walk(tree) if isinstance(it, ast.Attribute) and it.attr == "argv"]
    return not all(id(it) in read for it in every)


class _Followed:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        inner = (it for it in ast.walk(tree) if isinstance(it, ast.ImportFrom))
        of_argparse = [it for node in inner if node.module == "argparse" for it in node.names]
        self._imported = imported_names(tree)
        self._imported |= {it.asname or it.name: f"argparse.{it.name}" for it in of_argparse}
        self._names: _Names = {}
        self._within: list[ast.FunctionDef] = []
        self._calls = 0
        self._maybe = False  # whether a run may not come to what is looked at
        self._is_reached = True  # until the program may have ended
        self._visited: set[int] = set()
        self.parsed: list[Parsed] = []

    def run(self) -> None:
        made = [it for it in self._tree.body if isinstance(it, ast.FunctionDef)]
        self._names |= {it.name: it for it in made}
        self._block(self._tree.body, self._names)
        if not self.parsed:
            self._is_reached = False  # by what is followed here
            for it in ast.walk(self._tree):
                if isinstance(it, ast.FunctionDef) and _parses(it):
                    self._function(it, (), {})
        self._not_followed(self._tree, self._names)
        if self._calls > _MOST_CALLS:
            self.parsed.clear()
        told = (it for it in self.parsed if not it.parser.is_open)
        self.parsed = [it for it in told if not it.origin.not_followed]

    def _not_followed(self, part: ast.AST, names: _Names) -> None:
        """Take note of parsers that functions in it work on which nothing here has called."""
        held = {name: it for name, it in names.items() if isinstance(it, TextParser | _GroupOf)}
        for node in ast.walk(part) if held else ():
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Attribute) or id(node) in self._visited:
                continue
            of = held.get(ast.unparse(called.value))
            if of is not None and called.attr not in _HARMLESS:
                (of.parser if isinstance(of, _GroupOf) else of).not_followed = True

    def _block(self, body: Sequence[ast.stmt], names: _Names) -> None:
        for statement in body:
            self._statement(statement, names)
            if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                continue
            # What stands below may not be reached.
            self._maybe |= any(isinstance(it, ast.Return) for it in own_nodes([statement]))

    def _statement(self, statement: ast.stmt, names: _Names) -> None:
        if is_of_main(statement) and isinstance(statement, ast.If):
            self._block(statement.body, names)
        elif isinstance(statement, ast.With):
            self._with(statement, names)
        elif isinstance(statement, ast.Try):
            self._try(statement, names)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            # What one in another function reads of that is not followed.
            is_outer = names is self._names and isinstance(statement, ast.FunctionDef)
            names[statement.name] = cast("_Value", statement) if is_outer else None
        elif isinstance(statement, ast.Global):
            self._global(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            self._assign(statement, names)
        elif isinstance(statement, ast.If | ast.For | ast.While | ast.Match):
            self._perhaps(statement, names)
        elif isinstance(statement, ast.Expr | ast.Return):
            self._value(statement.value, names)
        else:
            self._children(statement, names)

    def _global(self, statement: ast.Global) -> None:
        for name in statement.names:
            _open(self._names.get(name))
            self._names[name] = None

    def _with(self, statement: ast.With, names: _Names) -> None:
        for it in statement.items:
            self._value(it.context_expr, names)
            if it.optional_vars is not None:
                _forget(it.optional_vars, names)
        self._block(statement.body, names)

    def _try(self, statement: ast.Try, names: _Names) -> None:
        caught = [ast.unparse(it.type) if it.type else _CATCH_ENDS[0] for it in statement.handlers]
        before, is_caught = self._maybe, any(end in it for it in caught for end in _CATCH_ENDS)
        self._maybe = before or is_caught
        self._block(statement.body, names)
        self._maybe = True
        for it in statement.handlers:
            self._block(it.body, names)
        self._block(statement.orelse, names)
        self._maybe = before
        self._block(statement.finalbody, names)

    def _perhaps(self, statement: ast.stmt, names: _Names) -> None:
        before, self._maybe = self._maybe, True
        if isinstance(statement, ast.For):
            _forget(statement.target, names)
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                self._statement(child, names)
            elif isinstance(child, ast.match_case):
                self._block(child.body, names)
            else:
                self._value(child, names)
        self._maybe = before

    def _assign(self, statement: ast.Assign | ast.AnnAssign, names: _Names) -> None:
        value = self._value(statement.value, names)
        many = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in many:
            if not isinstance(target, ast.Name):
                _open(value)
                _forget(target, names)
                continue
            is_same = target.id not in names or names[target.id] is value
            is_known = not self._maybe or is_same
            if not is_known:
                _open(names[target.id])
                _open(value)
            names[target.id] = value if is_known and value is not _LINE else None

    def _children(self, node: ast.AST, names: _Names) -> None:
        for child in ast.iter_child_nodes(node):
            _open(self._value(child, names))

    def _value(self, node: ast.AST | None, names: _Names) -> _Value:
        if isinstance(node, ast.Name):
            return names.get(node.id, self._names.get(node.id))
        if isinstance(node, ast.Call):
            return self._call(node, names)
        if isinstance(node, ast.Constant) and node.value is None:
            return _LINE
        if isinstance(node, ast.Subscript) and ast.unparse(node) == "sys.argv[1:]":
            return _LINE
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda | ast.ListComp | ast.DictComp):
            before, self._maybe = self._maybe, True
            self._children(node, names)
            self._maybe = before
        elif isinstance(node, ast.Attribute):
            if node.attr not in _TEXTS:
                _open(self._value(node.value, names))
        elif node is not None:
            self._children(node, names)
        return None

    def _call(self, call: ast.Call, names: _Names) -> _Value:
        self._visited.add(id(call))
        if self._is_parser(call):
            return self._made(call, names)
        if isinstance(call.func, ast.Attribute):
            of = self._value(call.func.value, names)
            if isinstance(of, TextParser | _GroupOf):
                return self._method(of, call, call.func.attr, names)
        called = names.get(name := ast.unparse(call.func), self._names.get(name))
        given = [self._value(it, names) for it in call.args]
        named = {it.arg: self._value(it.value, names) for it in call.keywords}
        is_followed = called not in self._within and len(self._within) < _DEEPEST
        if isinstance(called, ast.FunctionDef) and is_followed and None not in named:
            return self._function(called, given, named)
        self._is_reached &= name not in _ENDS
        if name not in _READ:
            for value in (*given, *named.values()):
                _open(value)
        return None

    def _is_parser(self, call: ast.Call) -> bool:
        first, dot, rest = ast.unparse(call.func).partition(".")
        return f"{self._imported.get(first, first)}{dot}{rest}" == _PARSER

    def _made(self, call: ast.Call, names: _Names) -> TextParser:
        parser = TextParser()
        parser.is_open = len(call.args) > len(_TEXTS)
        for it in call.keywords:
            if it.arg == "parents" and isinstance(it.value, ast.List | ast.Tuple):
                for element in it.value.elts:
                    parent = self._value(element, names)
                    _take_over(parser, parent if isinstance(parent, TextParser) else None)
            elif it.arg in _SETTINGS and isinstance(it.value, ast.Constant):
                parser.settings[it.arg] = it.value.value
            else:
                parser.is_open |= it.arg not in _OF_FORM
        return parser

    def _method(
        self, of: TextParser | _GroupOf, call: ast.Call, method: str, names: _Names
    ) -> _Value:
        parser = of.parser if isinstance(of, _GroupOf) else of
        maybe = self._maybe or (isinstance(of, _GroupOf) and of.conditional)
        if method == "add_argument":
            parser.added.append(Added(call, maybe))
        elif method in _GROUPS:
            return _GroupOf(parser, maybe)
        elif method == "parse_args":
            words = {it.arg: it.value for it in call.keywords if it.arg != "namespace"}
            given = [*call.args[:1], *words.values()]
            is_line = all(self._value(it, names) is _LINE for it in given)
            is_known = is_line and set(words) <= {"args"}
            now = replace(parser, added=[*parser.added], is_open=parser.is_open or not is_known)
            is_sure = self._is_reached and not self._maybe
            self.parsed.append(Parsed(now, is_sure, parser))
        elif method not in _HARMLESS:
            parser.is_open = True
        return None

    def _function(
        self, function: ast.FunctionDef, given: Sequence[_Value], named: Mapping[str | None, _Value]
    ) -> _Value:
        self._calls += 1
        if self._calls > _MOST_CALLS:
            return None
        taken = [it.arg for it in (*function.args.posonlyargs, *function.args.args)]
        optional = taken[len(taken) - len(function.args.defaults) :]
        none = [isinstance(it, ast.Constant) and it.value is None for it in function.args.defaults]
        names: _Names = {it.arg: None for it in ast.walk(function) if isinstance(it, ast.arg)}
        names |= {it: _LINE for it, is_none in zip(optional, none, strict=True) if is_none}
        names |= dict(zip(taken, given, strict=False))
        names |= {name: it for name, it in named.items() if name}
        for value in given[len(taken) :]:
            _open(value)
        before = self._maybe
        self._maybe |= any(not _passes_on(it) for it in function.decorator_list)
        self._within.append(function)
        self._block(function.body, names)
        self._not_followed(function, names)
        self._within.pop()
        self._maybe = before
        return self._returned(function, names)

    def _returned(self, function: ast.FunctionDef, names: _Names) -> _Value:
        """What it returns, where its last statement alone does, by a name."""
        returned = [it for it in own_nodes(function.body) if isinstance(it, ast.Return)]
        values = [names.get(it.value.id) for it in returned if isinstance(it.value, ast.Name)]
        if len(returned) == 1 and values and returned[0] is function.body[-1]:
            return values[0]
        for it in values:
            _open(it)
        return None


def _passes_on(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(name).rpartition(".")[2] in _PASS_ON


def _take_over(parser: TextParser, parent: TextParser | None) -> None:
    """Add what a parent has, as argparse does when a parser is made."""
    has_help = parent is not None and parent.settings.get("add_help", True)
    if parent is None or parent.is_open or (has_help and not _resolves(parser)):
        parser.is_open = True
    else:
        parser.added += parent.added


def _resolves(parser: TextParser) -> bool:
    is_without = not parser.settings.get("add_help", True)
    return is_without or parser.settings.get("conflict_handler") == "resolve"


def _open(value: _Value) -> None:
    """Take note that other code has got hold of it."""
    if isinstance(value, _GroupOf):
        value.parser.is_open = True
    elif isinstance(value, TextParser):
        value.is_open = True


def _forget(target: ast.expr, names: _Names) -> None:
    """Take note that a statement binds names to what is not known."""
    for it in ast.walk(target):
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store):
            _open(names.get(it.id))
            names[it.id] = None


def _parses(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(it, ast.Attribute) and it.attr == "parse_args" for it in own_nodes(function.body)
    )
