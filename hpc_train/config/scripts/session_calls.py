"""What the text of a script that opens a Session lacks. Own modules are read with it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.script_starts import own_modules


def opened_session(tree: ast.Module) -> ast.Call | None:
    """The call of `Session.open`; None where the text has none."""
    calls = (it for it in ast.walk(tree) if isinstance(it, ast.Call))
    opened = next((it for it in calls if _is_open(it.func)), None)
    return opened if opened is not None and "hpc_train" in words_in(tree) else None


def _is_open(method: ast.expr) -> bool:
    is_open = isinstance(method, ast.Attribute) and method.attr == "open"
    return is_open and f".{ast.unparse(method)}".endswith(".Session.open")


def unrestored(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """The line of a Session whose `restore` no text calls, what is wrong, and what to write."""
    opened = opened_session(tree)
    if opened is None or "restore" in _words(tree, file, search_path):
        return None
    said = "opens a Session, and nothing calls its restore: after a stop it would begin anew"
    name = name_of_session(tree, opened)
    return (
        opened.lineno,
        said,
        f"write {name}.restore(model=model, optimizer=optimizer) in front of its loop",
    )


def undrawn(
    tree: ast.Module, file: Path, search_path: Sequence[str], *, ranks: int
) -> tuple[int, str, str] | None:
    """The line of a Session whose `batches` no text calls, what is wrong, and what to write."""
    opened = opened_session(tree)
    if opened is None or "batches" in _words(tree, file, search_path):
        return None
    name, loop = name_of_session(tree, opened), _loader_loop(tree)
    each = f"each of the {ranks} ranks takes all samples, and " if ranks > 1 else ""
    said = f"opens a Session, and nothing calls its batches: {each}no attempt knows which were had"
    if loop is None:
        write = f"for batch in {name}.batches(loader):, in for epoch in {name}.epochs(10):"
    else:
        target, given = ast.unparse(loop.target), ast.unparse(loop.iter)
        write = f"for {target} in {name}.batches({given}): in line {loop.lineno}"
    return opened.lineno, said, f"write {write}, unless the data itself tells them apart"


def _words(tree: ast.Module, file: Path, search_path: Sequence[str]) -> set[str]:
    texts = (tree, *own_modules(tree, file, search_path))
    return {word for text in texts for word in words_in(text)}


def name_of_session(tree: ast.Module, opened: ast.Call) -> str:
    """`session` of `with Session.open(...) as session`, and of an assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and node.context_expr is opened and node.optional_vars:
            return ast.unparse(node.optional_vars)
        if isinstance(node, ast.Assign) and node.value is opened:
            return ast.unparse(node.targets[0])
    return "session"


def _loader_loop(tree: ast.Module) -> ast.For | None:
    """The loop over a DataLoader: one that is made there, or one that has a name."""
    made = [it for it in ast.walk(tree) if isinstance(it, ast.Assign)]
    loaders = {ast.unparse(it.targets[0]) for it in made if _is_loader(it.value)}
    loops = (it for it in ast.walk(tree) if isinstance(it, ast.For))
    return next(
        (it for it in loops if _is_loader(it.iter) or ast.unparse(it.iter) in loaders), None
    )


def _is_loader(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith("DataLoader")
