"""A module by its name, found and read as text: nothing of the user's is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from hpc_train.errors import ConfigError

__all__ = ["FoundModule", "Names", "find_module", "read_names", "submodules"]


@dataclass(frozen=True)
class FoundModule:
    """A module that was found.

    Attributes:
        name: Dotted.
        file: Its source; None for a namespace package, a C extension and the like.
        search: Folders of its submodules; empty when it is no package.
    """

    name: str
    file: Path | None
    search: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """What a module binds at its top level.

    Attributes:
        definitions: Classes and functions by name.
        bound: Every name, imported ones included.
        needs: Packages that it cannot be imported without, with the line that imports them.
        open_ended: Whether it may have more names than its text shows (a star import, its own
            `__getattr__`, writes to `globals()`).
    """

    definitions: dict[str, ast.ClassDef | ast.FunctionDef]
    bound: frozenset[str]
    needs: dict[str, int]
    open_ended: bool


def find_module(dotted: str, search_path: Sequence[str]) -> tuple[FoundModule | None, str]:
    """The longest beginning of `dotted` that is a module, and the rest of the words.

    Parents are not imported, as `importlib.util.find_spec` would do.
    """
    found: FoundModule | None = None
    words = dotted.split(".")
    path: Sequence[str] = search_path
    for count, _ in enumerate(words, start=1):
        spec = PathFinder.find_spec(".".join(words[:count]), list(path))
        if spec is None and count == 1 and words[0].isidentifier():
            # Built-in modules, and editable installs that bring a finder of their own.
            import importlib.util

            spec = importlib.util.find_spec(words[0])
        if spec is None:
            return found, ".".join(words[count - 1 :])
        source = spec.origin if spec.origin and spec.origin.endswith(".py") else None
        path = tuple(spec.submodule_search_locations or ())
        found = FoundModule(".".join(words[:count]), Path(source) if source else None, tuple(path))
        if not path:
            return found, ".".join(words[count:])
    return found, ""


def submodules(folders: Sequence[str]) -> list[str]:
    """Names that could be imported from these folders."""
    names = set()
    for folder in map(Path, folders):
        if folder.is_dir():
            for entry in folder.iterdir():
                if entry.suffix == ".py" or (entry / "__init__.py").is_file():
                    names.add(entry.stem)
    return sorted(names - {"__init__"})


def read_names(file: Path) -> Names:
    """Read the names that a Python file binds.

    Raises:
        ConfigError: with `FILE:LINE`, when it has a syntax error.
    """
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        what = getattr(error, "msg", None) or str(error)
        raise ConfigError(
            f"{file}:{line}: {what}", "the file cannot be imported: fix that line"
        ) from error
    definitions: dict[str, ast.ClassDef | ast.FunctionDef] = {}
    bound: set[str] = set()
    for statement in _statements(tree.body):
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            definitions[statement.name] = statement
        bound.update(_binds(statement))
    open_ended = "*" in bound or "__getattr__" in bound or "globals" in _calls(tree)
    return Names(definitions, frozenset(bound), _needs(tree.body), open_ended)


def _needs(body: Sequence[ast.stmt]) -> dict[str, int]:
    """Top-level packages that are imported without an `if` or a `try` around it."""
    needs: dict[str, int] = {}
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                needs.setdefault(alias.name.partition(".")[0], statement.lineno)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            needs.setdefault(statement.module.partition(".")[0], statement.lineno)
    return needs


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module does, also those under if, try, with and for."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)


def _binds(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With, ast.For)):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _calls(tree: ast.Module) -> set[str]:
    return {
        node.func.id
        for statement in tree.body
        if not isinstance(statement, (ast.ClassDef, ast.FunctionDef))
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
