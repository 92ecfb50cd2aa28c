"""A script's own loop in a `try` whose `except Exception` prints, and lets the script end with 0.

Such a run counts as completed, half trained. Said only where the text shows that nothing follows:
no retry, no next batch, no exit code that tells of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpc_train.config.scripts.script_starts import own_files

_BROAD = ("Exception", "BaseException")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_EXITS = ("exit", "quit", "SystemExit", "_exit", "abort", "kill")
_OF_TORCH = ("train", "eval", "step", "run", "fit", "main")  # or of another library's objects
# What a handler may call and still does nothing about the error.
_TELLS = (
    *("print", "print_exc", "print_exception", "format_exc", "exception", "error", "warning"),
    *("warn", "info", "debug", "critical", "write", "flush", "finish", "str", "repr", "type"),
    *("destroy_process_group", "empty_cache", "close", "format", "get_rank", "is_initialized"),
)


@dataclass(frozen=True)
class _TryPlace:
    """Where a `try` stands: its function, None at the top level, and the loops around it."""

    found: ast.Try
    function: ast.FunctionDef | None
    loops: int


@dataclass
class _Texts:
    """What the functions of a script and its own modules do, by their names."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)
    modules: list[ast.Module] = field(default_factory=list)
    trains: set[str] = field(default_factory=set)  # what comes to a backward pass
    loops: set[str] = field(default_factory=set)  # what a loop comes to


def swallowed_errors(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> Iterator[tuple[Path, int, str, str]]:
    """The file and the line of each such `except`, what of it, and what to write.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    own = {file: tree, **dict(own_files(tree, file, search_path, also_inner=True))}
    tries = {path: [*_tries(text, None, 0)] for path, text in own.items()}
    broad = (next(filter(_is_broad, it.found.handlers), None) for of in tries.values() for it in of)
    if not any(broad):
        return
    texts = _read([*own.values()])
    for path, places in tries.items():
        for place in places:
            line = _line_of_training(place.found.body, texts)
            if not line or (place.function and place.function.name in texts.loops):
                continue
            handler = next(filter(_is_broad, place.found.handlers), None)
            if handler is not None and _swallows(handler, place, texts):
                said = f"catches every error of the training (line {line}) and raises none again:"
                said += " the script would end with exit code 0, however far it came"
                yield path, handler.lineno, said, "write `raise` at the end of that except block"


def _read(trees: Sequence[ast.Module]) -> _Texts:
    texts = _Texts(modules=[*trees])
    nodes = [it for tree in trees for it in ast.walk(tree)]
    for it in nodes:
        if isinstance(it, ast.FunctionDef):
            texts.functions[it.name] = it
            texts.calls[it.name] = texts.calls.get(it.name, set()) | _called(_inside(it.body))
    of_loops = [it for loop in nodes if isinstance(loop, _LOOPS) for it in _inside(loop.body)]
    texts.loops = _reached(_called(of_loops), texts.calls)
    texts.trains = {it for it, names in texts.calls.items() if "backward" in names}
    while more := {it for it, of in texts.calls.items() if of & texts.trains} - texts.trains:
        texts.trains |= more
    return texts


def _reached(names: set[str], calls: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    while names:
        found |= names
        names = {it for name in names for it in calls.get(name, ())} - found
    return found


def _inside(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of statements, without those of functions and classes that they define."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _inside([*ast.iter_child_nodes(node)])


def _name_of(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of own functions that may be called; a method `train` is mostly torch's own."""
    calls = [it for it in nodes if isinstance(it, ast.Call)]
    return {_name_of(it) for it in calls if not _is_of_torch(it)}


def _is_of_torch(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _OF_TORCH:
        return False
    of = ast.unparse(call.func.value).lower()
    return of != "self" and "train" not in of


def _tries(node: ast.AST, function: ast.FunctionDef | None, loops: int) -> Iterator[_TryPlace]:
    for it in ast.iter_child_nodes(node):
        if isinstance(it, ast.FunctionDef):
            yield from _tries(it, it, 0)
            continue
        if isinstance(it, ast.Try):
            yield _TryPlace(it, function, loops)
        yield from _tries(it, function, loops + isinstance(it, _LOOPS))


def _line_of_training(body: Sequence[ast.stmt], texts: _Texts) -> int:
    """That of a backward pass, or of a call of an own function that comes to one; else 0."""
    for it in _inside(body):
        if not isinstance(it, ast.Call):
            continue
        if _called([it]) & {"backward", *texts.trains}:
            return it.lineno
    return 0


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(it is None or ast.unparse(it) in _BROAD for it in kinds)


def _swallows(handler: ast.ExceptHandler, place: _TryPlace, texts: _Texts) -> bool:
    """Whether the script surely ends behind it, and with 0."""
    if not _only_tells(handler, texts):
        return False
    last = handler.body[-1]
    leaves = isinstance(last, ast.Return) or (isinstance(last, ast.Break) and place.loops == 1)
    if place.loops and not leaves:
        return False
    function = place.function
    if any(isinstance(it, ast.Return) and _has_value(it) for it in _inside(_body(function))):
        return False  # who calls it may tell by what it returns
    return not any(map(_may_fail, _behind(place, texts)))


def _body(function: ast.FunctionDef | None) -> Sequence[ast.stmt]:
    return function.body if function else []


def _behind(place: _TryPlace, texts: _Texts) -> Iterator[ast.AST]:
    """What is run once the error is caught: of its function, and of all that call this one."""
    found, function = place.found, place.function
    own = {id(it) for part in (*found.body, *found.handlers) for it in ast.walk(part)}
    names = {function.name, *_callers({function.name}, texts)} if function else set[str]()
    bodies = [_body(function), *(texts.functions[it].body for it in names)]
    for body in [*bodies, *(it.body for it in texts.modules)]:
        nodes = [*_inside(body)]
        lines = [it.lineno for it in nodes if isinstance(it, ast.Call) and _called([it]) & names]
        lines += [found.lineno] if found in nodes else []
        if lines:
            rest = (it for it in nodes if getattr(it, "lineno", 0) >= min(lines))
            yield from (it for it in rest if id(it) not in own)


def _only_tells(handler: ast.ExceptHandler, texts: _Texts) -> bool:
    """Whether a handler does no more than to say what was raised."""
    for it in _inside(handler.body):
        if isinstance(it, ast.Raise | ast.Continue | ast.Assign | ast.AugAssign | ast.NamedExpr):
            return False
        if isinstance(it, ast.Return) and _has_value(it):
            return False
        if isinstance(it, ast.Call) and not _tells(it, texts):
            return False
    return True


def _tells(call: ast.Call, texts: _Texts) -> bool:
    name = _name_of(call)
    if (own := texts.functions.get(name)) and isinstance(call.func, ast.Name):
        nodes = [it for it in _inside(own.body) if isinstance(it, ast.Call)]
        return not any(map(_may_fail, _inside(own.body))) and all(
            _name_of(it) in _TELLS for it in nodes
        )
    return name in _TELLS and "pars" not in ast.unparse(call.func)  # parser.error ends with 2


def _has_value(node: ast.Return) -> bool:
    return node.value is not None and ast.unparse(node.value) != "None"


def _callers(names: set[str], texts: _Texts) -> set[str]:
    found: set[str] = set()
    while names := {it for it, of in texts.calls.items() if of & names} - found:
        found |= names
    return found


def _may_fail(node: ast.AST) -> bool:
    """Whether a statement may end the script with another exit code than 0."""
    if isinstance(node, ast.Raise):
        return True
    if not isinstance(node, ast.Call) or _name_of(node) not in _EXITS:
        return False
    given = node.args[0] if node.args else ast.Constant(0)
    if isinstance(given, ast.Call):  # sys.exit(main())
        return ast.unparse(given.func) in ("int", "bool", "len")
    return ast.unparse(given) != "0"
