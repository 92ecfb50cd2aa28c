"""A module by its name, found and read as text: nothing of the user's is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

from hpc_train.config.python_text.syntax_words import how_to_correct
from hpc_train.errors import ConfigError

UNREADABLE = "the file cannot be imported"  # how the fix of a syntax error begins
_MOST_STEPS = 12  # modules may take all names of one another
_HIDING = ("globals", "setattr", "exec")  # what binds names that no text shows
_LITERALS = (ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set)


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
class NeededImport:
    """An import at the top level: the module, with leading dots where relative, and its names."""

    module: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Names:
    """What a module binds at its top level.

    Attributes:
        definitions: Classes and functions by name.
        bound: Every name, imported ones included.
        imports: Of imported names the dotted name behind it, with leading dots where relative.
        values: Names that are bound to literals, or to objects of the module's own classes.
        needs: What it cannot be imported without.
        stars: Modules of which it takes all names, with leading dots where relative.
        is_opaque: Whether its text hides names (its own `__getattr__`, writes to `globals()`).
    """

    definitions: dict[str, ast.ClassDef | ast.FunctionDef]
    bound: frozenset[str]
    imports: dict[str, str]
    values: frozenset[str]
    needs: tuple[NeededImport, ...]
    stars: tuple[str, ...]
    is_opaque: bool

    @property
    def open_ended(self) -> bool:
        """Whether it may have more names than its text shows."""
        return bool(self.stars) or self.is_opaque


def find_module(dotted: str, search_path: Sequence[str]) -> tuple[FoundModule | None, str]:
    """The longest beginning of `dotted` that is a module, and the rest of the words.

    Parents are not imported, as `importlib.util.find_spec` would do.
    """
    found: FoundModule | None = None
    words = dotted.split(".")
    if words[0] == "__main__":  # the program itself, which importlib asks for and does not find
        return FoundModule("__main__", None, ()), ".".join(words[1:])
    path: Sequence[str] = search_path
    for count, word in enumerate(words, start=1):
        # By its last word alone: of a folder without __init__.py in another one PathFinder would
        # ask sys.modules for the parent, which is not imported (`_NamespacePath`).
        spec = PathFinder.find_spec(word, list(path))
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
    return _names_in(_source(file), file)


def full_name(written: str, imports: Mapping[str, str]) -> str:
    """`torch.optim.SGD` of `optim.SGD`, by what a module imports."""
    first, dot, rest = written.partition(".")
    return f"{imports.get(first, first)}{dot}{rest}"


def has_word(dotted: str, word: str, search_path: Sequence[str]) -> bool:
    """Whether the file of a module, or of what is named in it, has a word in its text."""
    found = find_module(dotted, search_path)[0]
    try:
        return bool(found and found.file and word in found.file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return False


def _source(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}", "check its permissions"
        ) from error


@lru_cache(maxsize=64)  # a check asks a dozen times for the same few modules
def _names_in(source: bytes, file: Path) -> Names:
    try:
        tree = ast.parse(source, filename=str(file))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        what = getattr(error, "msg", None) or str(error)
        hint = f"{UNREADABLE}: {how_to_correct(error, source)}"
        raise ConfigError(f"{file}:{line}: {what}", hint) from error
    definitions: dict[str, ast.ClassDef | ast.FunctionDef] = {}
    bound: set[str] = set()
    imports: dict[str, str] = {}
    values: set[str] = set()
    stars: list[str] = []
    for statement in _statements(tree.body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            imports.update(_imports(statement))
            stars += _stars(statement)
        elif isinstance(statement, ast.Assign) and _is_object(statement.value, definitions):
            values.update(_binds(statement))
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            definitions[statement.name] = statement
        bound.update(_binds(statement))
    is_opaque = "__getattr__" in bound or not _calls(tree).isdisjoint(_HIDING)
    return Names(
        definitions=definitions,
        bound=frozenset(bound - {"*"}),
        imports=imports,
        values=frozenset(values),
        needs=tuple(_needs(tree.body)),
        stars=tuple(stars),
        is_opaque=is_opaque,
    )


def _is_object(value: ast.expr, definitions: Mapping[str, ast.AST]) -> bool:
    """Whether it is a literal, or an object of a class of the module itself: `Net()`."""
    if isinstance(value, _LITERALS):
        return True
    made = value.func if isinstance(value, ast.Call) else None
    return isinstance(made, ast.Name) and isinstance(definitions.get(made.id), ast.ClassDef)


def _imports(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name
            if alias.asname
            else alias.name.partition(".")[0]
            for alias in statement.names
        }
    origin = "." * statement.level + (f"{statement.module}." if statement.module else "")
    return {alias.asname or alias.name: f"{origin}{alias.name}" for alias in statement.names}


def _stars(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if not isinstance(statement, ast.ImportFrom) or statement.names[0].name != "*":
        return []
    return ["." * statement.level + (statement.module or "")]


def _needs(body: Sequence[ast.stmt]) -> Iterator[NeededImport]:
    """What is imported without an `if` or a `try` around it."""
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield NeededImport(alias.name, (), statement.lineno)
        elif isinstance(statement, ast.ImportFrom):
            names = tuple(alias.name for alias in statement.names)
            module = "." * statement.level + (statement.module or "")
            yield NeededImport(module, names, statement.lineno)


def lacks_name(
    module: FoundModule, name: str, search_path: Sequence[str], steps: int = _MOST_STEPS
) -> bool:
    """Whether the text of a module, and of those it takes all names of, tells that `name` is none.

    False as well where the text does not tell.
    """
    if module.file is None or not steps:
        return False
    try:
        text = _source(module.file)
        if b"\ndef __getattr__(" in text:  # as of torch, whose text takes 30 ms to parse
            return False
        names = _names_in(text, module.file)
    except ConfigError:
        return False
    if names.is_opaque or name in names.bound or name in submodules(module.search):
        return False
    for star in names.stars:
        source, rest = find_module(absolute_name(star, module), search_path)
        if source is None or rest or not lacks_name(source, name, search_path, steps - 1):
            return False
    return True


def names_of(module: FoundModule, search_path: Sequence[str], steps: int = _MOST_STEPS) -> set[str]:
    """The names of a module, those it takes of others by a star included."""
    found = set(submodules(module.search))
    if module.file is None or not steps:
        return found
    names = read_names(module.file)
    found |= names.bound
    for star in names.stars:
        source, rest = find_module(absolute_name(star, module), search_path)
        found |= names_of(source, search_path, steps - 1) if source and not rest else set()
    return found


def bound_in(definition: ast.ClassDef) -> set[str]:
    """The names that the body of a class binds."""
    return {name for statement in _statements(definition.body) for name in _binds(statement)}


def bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module's, or of a class's, body binds."""
    return {name for it in _statements([statement]) for name in _binds(it)}


def absolute_name(target: str, module: FoundModule) -> str:
    """`..x.name` as `module` writes it, without the dots; empty where it leads out of all."""
    name = target.lstrip(".")
    level = len(target) - len(name)
    if not level:
        return name
    parts = module.name.split(".")
    kept = parts[: max(0, len(parts) - level + bool(module.search))]
    return ".".join([*kept, name]).strip(".") if kept else ""


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
