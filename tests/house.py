"""What the package's source says of itself, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ADAPTER = Path("hpc_train", "training", "private")
OWN = ("hpc_train", "tests", "benchmarks")
# Names that are not private, though they look so.
PUBLIC = {
    "os._exit": "Python documents it",
    "atexit._run_exitfuncs": "os._exit leaves out the hooks of loggers",
    "member._value_": "enum documents it, for members made by __new__",
}
# Names that look public, and that Lightning does not document.
UNDOCUMENTED = {"fit_loop", "epoch_loop", "val_loop", "validate_loop", "test_loop", "reducer"}


def private_uses(paths: Iterable[Path]) -> list[str]:
    """Uses of names that are private to a library, as `file:line: what`; the adapter may.

    A name with an underscore is the file's own where the file defines it. What is reached through
    an imported module, through `super()`, or by its text (`getattr(x, "_name")`) is looked at, too.
    """
    found = []
    for path in paths:
        if ADAPTER.parts == path.parts[-len(ADAPTER.parts) - 1 : -1]:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [f"{path}:{line}: {what}" for line, what in sorted(set(_uses(tree)))]
    return found


def _uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    own, foreign = set(_defined(tree)), set(_foreign(tree))
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Import | ast.ImportFrom) and _imports_private(node))
            or (isinstance(node, ast.Attribute) and _reaches_private(node, own, foreign))
            or (isinstance(node, ast.Call) and _names_private(node, own))
        ) and ast.unparse(node) not in PUBLIC:
            yield node.lineno, ast.unparse(node)


def _imports_private(node: ast.Import | ast.ImportFrom) -> bool:
    module = (isinstance(node, ast.ImportFrom) and node.module) or ""
    names = [f"{module}.{alias.name}" for alias in node.names]
    return not _is_own(node) and any(_is_private(part) for it in names for part in it.split("."))


def _reaches_private(node: ast.Attribute, own: set[str], foreign: set[str]) -> bool:
    base = ast.unparse(node.value)
    others = base == "super()" or base in foreign or node.attr not in own
    return node.attr in UNDOCUMENTED or (_is_private(node.attr) and others)


def _names_private(node: ast.Call, own: set[str]) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name not in ("getattr", "hasattr", "setattr", "delattr", "__setattr__"):
        return False
    texts = [it.value for it in node.args[1:2] if isinstance(it, ast.Constant)]
    return any(_is_private(text) and text not in own for text in texts)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import is of this repository's own code."""
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or (node.module or "").split(".")[0] in OWN
    return all(alias.name.split(".")[0] in OWN for alias in node.names)


def _foreign(tree: ast.Module) -> Iterator[str]:
    """Names that an import of others' code binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and not _is_own(node):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names that the file gives a meaning: functions, classes, variables, attributes of `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if ast.unparse(node.value) in ("self", "cls") else []
