"""What a name of a module is, and what a class derives from: read from text, not imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hpc_train.config.python_text.modules import (
    Names,
    absolute_name,
    bound_by,
    bound_in,
    find_module,
    full_name,
    read_names,
)
from hpc_train.errors import ConfigError

# Following imports through packages ends somewhere, also where two modules import each other.
_MOST_STEPS = 12
# Bases whose own bases are known without reading torch.
_OTHER_ROOTS = ("torch.nn.Module", "torch.nn.modules.module.Module", "torch.utils.data.Dataset")
_PACKAGES = ("pytorch_lightning", "lightning.")
_OTHER_MODULES = ("abc", "builtins", "typing", "typing_extensions", "collections", "dataclasses")


# The roots of what a training is made of: of what they have each method does nothing, or raises.
_ROOTS = re.compile(
    r"(?:(?:pytorch_lightning|lightning)\.(?:\w+\.)*Lightning(?:Data)?Module"
    r"|torch\.utils\.data\.(?:dataset\.)?Dataset)\Z"
)


@dataclass(frozen=True)
class Located:
    """Where a dotted name leads.

    Attributes:
        module: The module whose text has it, dotted; the name itself where that is a module.
        name: In that module; empty where the whole is a module.
        names: What that module binds.
    """

    module: str
    name: str
    names: Names | None

    @property
    def definition(self) -> ast.ClassDef | ast.FunctionDef | None:
        """The statement that makes it; None where the text does not tell."""
        return self.names.definitions.get(self.name) if self.names else None


def locate(dotted: str, search_path: Sequence[str], steps: int = _MOST_STEPS) -> Located | None:
    """Follow a dotted name through the imports of modules to where it is made.

    Returns:
        None where the text does not tell.
    """
    module, rest = find_module(dotted, search_path)
    if module is None:
        return None
    if not rest:
        return Located(module.name, "", None)
    if module.file is None:
        return None
    try:
        names = read_names(module.file)
    except ConfigError:
        return None  # its syntax is told of where the config names the module itself
    first, _, below = rest.partition(".")
    if first in names.definitions or first in names.values:
        return None if below else Located(module.name, first, names)
    if steps and first in names.imports:
        target = absolute_name(names.imports[first], module)
        return locate(f"{target}.{below}" if below else target, search_path, steps - 1)
    for star in names.stars if steps and first not in names.bound else ():
        target = absolute_name(star, module)
        if found := locate(f"{target}.{rest}", search_path, steps - 1):
            return found
    return None


def is_value(located: Located) -> bool:
    """Whether it is bound to a number, a text or the like, which nobody can call."""
    return located.names is not None and located.name in located.names.values


def cannot_be_made(definition: ast.ClassDef | ast.FunctionDef | None) -> str:
    """Why calling it gives no object: an abstract class, a function that returns nothing; or ''."""
    if isinstance(definition, ast.FunctionDef):
        nodes = list(ast.walk(definition))
        gives = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
        gives = gives or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
        return "" if gives or definition.decorator_list else "is a function that returns nothing"
    if definition is None:
        return ""
    bases = [*definition.bases, *(keyword.value for keyword in definition.keywords)]
    if not any(ast.unparse(base).rpartition(".")[2] in ("ABC", "ABCMeta") for base in bases):
        return ""
    methods = [
        statement.name
        for statement in definition.body
        if isinstance(statement, ast.FunctionDef)
        and any("abstract" in ast.unparse(decorator) for decorator in statement.decorator_list)
    ]
    return f"is abstract: it lacks {', '.join(methods)}" if methods else ""


def derives_from(
    located: Located, wanted: str, search_path: Sequence[str], steps: int = _MOST_STEPS
) -> bool | None:
    """Whether a class is `wanted` or has it among its bases; None where the text does not tell."""
    definition = located.definition
    if not isinstance(definition, ast.ClassDef) or located.names is None:
        return None
    if definition.name == wanted:
        return True
    answers = [_base_is(base, located, wanted, search_path, steps) for base in definition.bases]
    if True in answers:
        return True
    hidden = None in answers or definition.keywords or definition.decorator_list
    return None if hidden else False


def _base_is(
    base: ast.expr, below: Located, wanted: str, search_path: Sequence[str], steps: int
) -> bool | None:
    expression = base.value if isinstance(base, ast.Subscript) else base
    text = ast.unparse(expression)
    if text.rpartition(".")[2] == wanted:
        return True
    first, _, rest = text.partition(".")
    assert below.names is not None
    if first in below.names.imports:
        full = f"{below.names.imports[first]}.{rest}".rstrip(".")
        if full.rpartition(".")[2] == wanted:
            return True
        if full in _OTHER_ROOTS or full.partition(".")[0] in _OTHER_MODULES:
            return False
    elif text == "object":
        return False
    found = locate(f"{below.module}.{text}", search_path) if steps else None
    return derives_from(found, wanted, search_path, steps - 1) if found else None


def lacks_method(
    dotted: str, method: str, search_path: Sequence[str], steps: int = _MOST_STEPS
) -> bool:
    """Whether the text tells that neither the class nor any base below Lightning's roots has one.

    False as well where it does not tell: a base in C, a decorator, a module that is not found.
    """
    found = locate(dotted, search_path) if steps else None
    definition = found.definition if found else None
    if found is None or found.names is None or not isinstance(definition, ast.ClassDef):
        return False
    if definition.decorator_list or {method, "__init_subclass__"} & bound_in(definition):
        return False
    if definition.keywords or _gives_elsewhere(found, method, search_path):
        return False
    answers = [
        _ROOTS.match(_written(base, found.names)) is not None
        or lacks_method(f"{found.module}.{base}", method, search_path, steps - 1)
        for base in map(_plain, definition.bases)
    ]
    is_mixin = not definition.bases and steps < _MOST_STEPS  # what it lacks another base may have
    return is_mixin or (bool(answers) and all(answers))


def method_of(
    dotted: str, method: str, search_path: Sequence[str], steps: int = _MOST_STEPS
) -> tuple[Located, ast.FunctionDef] | None:
    """The method that a class surely has, with the class whose text has it; None if it may not."""
    found = locate(dotted, search_path) if steps else None
    definition = found.definition if found else None
    if found is None or found.names is None or not isinstance(definition, ast.ClassDef):
        return None
    if definition.decorator_list or definition.keywords:
        return None
    if method in bound_in(definition):
        own = [it for it in definition.body if method in bound_by(it)]
        last = own[-1] if own else None
        is_sure = isinstance(last, ast.FunctionDef) and not last.decorator_list
        is_sure = is_sure and not _gives_elsewhere(found, method, search_path)
        return (found, last) if is_sure and isinstance(last, ast.FunctionDef) else None
    for base in map(_plain, definition.bases):
        if _ROOTS.match(_written(base, found.names)):
            continue  # without reading Lightning
        if sure := method_of(f"{found.module}.{base}", method, search_path, steps - 1):
            return sure
        if not lacks_method(f"{found.module}.{base}", method, search_path):
            return None
    return None


def place_of(found: Located, line: int, path: Sequence[str]) -> str:
    """`nets.py:12`, as seen from the user's folder."""
    module = find_module(found.module, path)[0]
    file = module.file if module and module.file else Path(found.module)
    folder = Path(path[0])
    return f"{file.relative_to(folder) if file.is_relative_to(folder) else file}:{line}"


def lightning_package(dotted: str, search_path: Sequence[str], steps: int = _MOST_STEPS) -> str:
    """Of Lightning's two packages the one that a class of the user's surely derives from; or ''.

    Not where an import of it stands under a condition, and not for a class of Lightning's own.
    """
    found = locate(dotted, search_path) if steps else None
    definition = found.definition if found else None
    if found is None or found.names is None or not isinstance(definition, ast.ClassDef):
        return ""
    if found.module.startswith(_PACKAGES):
        return ""
    needed = {it.module.partition(".")[0] for it in found.names.needs}
    for base in map(_plain, definition.bases):
        written = _written(base, found.names)
        package = written.partition(".")[0]
        if package in needed and len(needed & {"pytorch_lightning", "lightning"}) == 1:
            if package == "pytorch_lightning":
                return package
            if package == "lightning" and not written.startswith("lightning.fabric"):
                return "lightning.pytorch"
        if below := lightning_package(f"{found.module}.{base}", search_path, steps - 1):
            return below
    return ""


def _plain(base: ast.expr) -> str:
    """`Dataset` for `Dataset[Tensor]`."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def _written(base: str, names: Names) -> str:
    """A base with the module that it is imported from."""
    return full_name(base, names.imports)


def _gives_elsewhere(found: Located, method: str, search_path: Sequence[str]) -> bool:
    """Whether the module of a class speaks of a method so that the class may get it that way.

    Not so where another class of it has the method, or calls it: `Net.step = step` and
    `setattr(self, "step", ...)` do.
    """
    module = find_module(found.module, search_path)[0]
    if module is None or module.file is None:
        return True
    text = module.file.read_text("utf-8", "replace")
    if not any(word in text for word in (method, "setattr", "exec")):
        return False
    given = _given_in(text)
    return given is None or method in given


@lru_cache(maxsize=64)  # a check asks for dozens of methods of the same few modules
def _given_in(text: str) -> frozenset[str] | None:
    """The names that a class of the module may be given from elsewhere in it; None for any."""
    given = set[str]()
    for node in _outside_of_classes(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            given.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
                return None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            given.add(node.value)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            if node.id == "exec":
                return None
            given.add(node.id)
    return frozenset(given)


def _outside_of_classes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but what the body of a class says of its own names: `validation_step = test_step`."""
    for node in ast.iter_child_nodes(tree):
        own = (ast.Assign, ast.AnnAssign) if isinstance(tree, ast.ClassDef) else ()
        if not isinstance(node, own):
            yield node
            yield from _outside_of_classes(node)
