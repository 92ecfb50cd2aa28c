"""Arguments that a script surely gives a class that does not take them, told from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.meant_words.removed_arguments import (
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.python_text.harmless_code import is_of_main
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.modules import find_module, read_names
from hpc_train.config.scripts.script_calls import classes_meant
from hpc_train.config.scripts.script_trainers import made_trainers
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.config.words import did_you_mean

_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_MAYBE = (
    *(ast.Lambda, ast.IfExp, ast.BoolOp, ast.GeneratorExp, ast.ListComp, ast.SetComp),
    *(ast.DictComp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)
_ENDS = ("exit", "sys.exit", "quit", "os._exit", "os.abort")
_HELD_BACK = ("suppress", "raises")  # of contextlib and pytest
_TOLD_ELSEWHERE = {*RENAMED_ARGUMENTS, *REMOVED_ARGUMENTS, *UNUSED_ARGUMENTS}
_MOST_CALLS = 4  # of functions that call functions
_MOST_SHOWN = 10


def unknown_argument(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """The line of such a call, what is wrong with it and what to write; None without one.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    stored = {it.attr for it in ast.walk(tree) if isinstance(it, ast.Attribute) and _is_set(it)}
    if stored & {"__init__", "Trainer"}:
        return None
    taken_by: Mapping[str, tuple[str, ...]] | None = None
    trainers = {id(it) for it in made_trainers(tree)}
    once = bound_once(tree)
    for call in sure_calls(tree):
        name = ast.unparse(call.func)
        words = [it.arg for it in call.keywords if it.arg]
        if not words or name.partition(".")[0] not in once:
            continue
        if id(call) in trainers:
            words = [it for it in words if it not in _TOLD_ELSEWHERE]
            taken = tuple(trainer_parameters(search_path)) or None
        else:
            if taken_by is None:
                taken_by = _taken_by_classes(tree, file, search_path)
            taken = taken_by.get(name)
        unknown = [it for it in words if taken is not None and it not in taken]
        if unknown and taken is not None:
            s = "s" if len(unknown) > 1 else ""
            said = f"gives {name} the argument{s} {', '.join(unknown)}, which it does not take"
            hints = {it: _hint(it, taken) for it in unknown}
            hint = "; ".join(f"{it}: {fix}" for it, fix in hints.items())
            return call.lineno, said, hint if s else hints[unknown[0]]
    return None


def _hint(word: str, taken: Sequence[str]) -> str:
    if near := did_you_mean(word, taken):
        return near
    return f"it takes {', '.join(taken) or 'none'}" if len(taken) <= _MOST_SHOWN else "leave it out"


def bound_once(tree: ast.Module) -> set[str]:
    """Names that one statement of the script binds, and no argument of a function is called."""
    bound: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound += [it.asname or it.name.partition(".")[0] for it in node.names]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound.append(node.name)
        elif isinstance(node, ast.arg):
            bound.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.append(node.id)
    return {it for it in bound if bound.count(it) == 1}


def _taken_by_classes(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """What a class of the script's own, or of a module beside it, takes, where its text tells."""
    meant = classes_meant(tree, search_path)
    found: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in meant:
            known = parameters_of(node.name, read_names(file))
            found |= {node.name: known.names} if known else {}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module, rest = find_module(node.module, search_path[:1])
            names = read_names(module.file) if module and module.file and not rest else None
            for it in node.names if names else ():
                known = parameters_of(it.name, names) if names else None
                if known and (it.asname or it.name) in meant:
                    found[it.asname or it.name] = known.names
    return found


def _is_set(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def sure_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that each run of the script comes to, in this order."""
    return (it for it in sure_nodes(tree) if isinstance(it, ast.Call))


def sure_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All that each run of the script evaluates, in this order, as far as that is certain."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
    alone = {
        name: made[0]
        for name, made in functions.items()
        if len(made) == 1 and not made[0].decorator_list
    }
    yield from _in_body(tree.body, alone, _MOST_CALLS)


def _in_body(
    body: Sequence[ast.stmt], functions: Mapping[str, ast.FunctionDef], steps: int
) -> Iterator[ast.AST]:
    for statement in body:
        if is_of_main(statement) and isinstance(statement, ast.If):
            yield from _in_body(statement.body, functions, steps)
            continue
        if isinstance(statement, ast.With):
            if any(it in ast.unparse(statement.items[0]) for it in _HELD_BACK):
                return
            for opened in statement.items:
                yield from _nodes_in(opened.context_expr)
            yield from _in_body(statement.body, functions, steps)
        elif isinstance(statement, _PLAIN):
            for node in _nodes_in(statement):
                yield node
                call = node.func if isinstance(node, ast.Call) and steps else None
                called = functions.get(ast.unparse(call)) if call else None
                if called is not None and not _is_generator(called):
                    yield from _in_body(called.body, functions, steps - 1)
        if _may_end(statement):
            return  # what stands below may not be reached


def _nodes_in(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _MAYBE):
        return
    for child in ast.iter_child_nodes(node):
        yield from _nodes_in(child)
    yield node


def _may_end(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return False
    return any(
        isinstance(it, ast.Return | ast.Raise)
        or (isinstance(it, ast.Call) and ast.unparse(it.func) in _ENDS)
        for it in own_nodes([statement])
    )


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(it, ast.Yield | ast.YieldFrom) for it in own_nodes(function.body))
