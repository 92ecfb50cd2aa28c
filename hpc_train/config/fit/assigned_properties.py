"""Properties of Lightning's classes that an `__init__` assigns, which Python refuses: from text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of, own_nodes

_ROOTS = ("LightningModule", "LightningDataModule")
_SAVED = "hparams"
_PLACED = "device"
# Of a module alone; a data module may have an attribute of these names.
_OF_A_MODULE = (_PLACED, "logger", "current_epoch", "global_step", "global_rank", "local_rank")
# With one of these in a class the assignment may be its own affair.
_OWN_WAYS = ("__setattr__", "setter", "def __new__")
# What makes no torch.nn.Module, which alone may be assigned to such a name.
_MAKES_A_VALUE = (
    *("dict", "vars", "Namespace", "SimpleNamespace", "getLogger", "int", "float", "str"),
    *("torch.device", "TensorBoardLogger", "CSVLogger", "WandbLogger"),
)
_LITERALS = (ast.Dict, ast.DictComp, ast.Constant, ast.JoinedStr, ast.List, ast.Tuple)
_LONGEST = 60  # characters of what is assigned, to be written again


def instead_of_assigning(name: str, value: ast.expr | None) -> str:
    """What to write for `self.NAME = value`.

    Args:
        name: The property's.
        value: What is assigned to it; None where the text does not tell.
    """
    if name == _SAVED:
        text = "" if value is None else ast.unparse(value)
        text = "..." if len(text) > _LONGEST else text
        return f"write self.save_hyperparameters({text}) in its place, which fills self.{name}"
    if name == _PLACED:
        return f"leave it out: Lightning moves the model, and self.{name} tells where it is"
    return f"another name for what is kept there, as in self.my_{name}"


def assigned_property(class_path: str, path: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong, with its place, and what to write; None where that is not sure.

    Args:
        class_path: Of the model or the data.
        path: As `sys.path`, with the user's folder first.
    """
    found = locate(class_path, path)
    wrong = _in_class(found) if found else None
    if found is None or wrong is None:
        return None
    name, node = wrong
    said = f"{class_path}.__init__ assigns self.{name} ({place_of(found, node.lineno, path)})"
    return f"{said}, which Lightning does not let it", instead_of_assigning(name, node.value)


def made_by_script(
    tree: ast.Module, calls: Iterator[ast.Call], file: Path, search_path: Sequence[str]
) -> tuple[str, str] | None:
    """The same of the first class that each run of a script makes an object of.

    Args:
        tree: The script.
        calls: Those that each run comes to.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    homes = dict(_classes(tree, file.stem))
    for call in calls:
        home = homes.get(ast.unparse(call.func))
        if home and (wrong := assigned_property(home, search_path[:1])):
            return wrong
    return None


def _classes(tree: ast.Module, own: str) -> Iterator[tuple[str, str]]:
    """Of each class's name in the script the dotted one."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, f"{own}.{node.name}"
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((it.asname or it.name, f"{node.module}.{it.name}") for it in node.names)


def _in_class(found: Located) -> tuple[str, ast.Assign] | None:
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or definition.decorator_list:
        return None
    bases = [ast.unparse(it).rpartition(".")[2] for it in definition.bases]
    start = methods_of(definition).get("__init__")
    if len(bases) != 1 or bases[0] not in _ROOTS or definition.keywords or start is None:
        return None
    if start.decorator_list or any(it in ast.unparse(definition) for it in _OWN_WAYS):
        return None
    names = {_SAVED, *(_OF_A_MODULE if bases[0] == _ROOTS[0] else ())}
    names -= _given_by(definition)
    own = (*start.args.args, *start.args.kwonlyargs, start.args.kwarg)
    arguments = {it.arg for it in own if it}
    return _in_body(start.body, names, arguments)


def _given_by(definition: ast.ClassDef) -> set[str]:
    """What the class binds in its own body, as a property of its own."""
    stored = (it for node in definition.body for it in ast.walk(node) if isinstance(it, ast.Name))
    names = {it.id for it in stored if isinstance(it.ctx, ast.Store)}
    return names | set(methods_of(definition))


def _in_body(
    body: Sequence[ast.stmt], names: set[str], arguments: set[str]
) -> tuple[str, ast.Assign] | None:
    """The first assignment that no condition stands around."""
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            target = statement.targets[0]
            is_own = ast.unparse(target.value) == "self" and target.attr in names
            if is_own and _is_a_value(target.attr, statement.value, arguments):
                return target.attr, statement
        if any(isinstance(it, (ast.Return, ast.Raise)) for it in own_nodes([statement])):
            return None  # what stands below may not be reached
    return None


def _is_a_value(name: str, value: ast.expr, arguments: set[str]) -> bool:
    """Whether what is assigned is surely no module, which torch registers under any name."""
    if isinstance(value, ast.Name):
        return name in (_SAVED, _PLACED) and value.id in arguments
    if not isinstance(value, ast.Call):
        return isinstance(value, _LITERALS)
    called = ast.unparse(value.func)
    return called in _MAKES_A_VALUE or called.rpartition(".")[2] in _MAKES_A_VALUE
