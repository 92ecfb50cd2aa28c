"""A script's text as a tree, for those who only look something up in it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


def script_tree(file: Path) -> ast.Module | None:
    """None where it cannot be read, or is no Python: that is told where the script is checked.

    All who ask for the same text get the same tree, and change nothing in it.
    """
    try:
        return _parsed(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=64)  # several checks read the modules of a script
def _parsed(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the script's own business
        return ast.parse(source)


def words_in(tree: ast.Module) -> set[str]:
    """All names of a text, with those that are imported, and its short texts."""
    return words_of(ast.walk(tree))


def words_of(nodes: Iterable[ast.AST]) -> set[str]:
    """The same of some of its nodes."""
    words: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.alias):
            words |= {*node.name.split("."), node.asname or node.name.rpartition(".")[2]}
        elif isinstance(node, ast.ImportFrom):
            words |= {*(node.module or "").split(".")}
        elif isinstance(node, ast.arg | ast.keyword):
            words.add(node.arg or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value} if node.value.isidentifier() else set()
    return words


def name_given_to(value: ast.expr, tree: ast.Module) -> str:
    """What a script calls what it makes there; empty where it has no name."""
    made = (it for it in ast.walk(tree) if isinstance(it, ast.Assign) and it.value is value)
    return next((ast.unparse(it.targets[0]) for it in made), "")
