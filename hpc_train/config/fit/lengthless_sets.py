"""Data sets of the user's without `__len__`, which a DataLoader needs: told from the text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.fit.sampleless_sets import GETS
from hpc_train.config.fit.sure_loaders import SureLoader, sure_loaders
from hpc_train.config.fit.sure_samplers import made
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import (
    Located,
    lacks_method,
    locate,
    method_of,
    place_of,
)
from hpc_train.config.python_text.method_signatures import gives_value, methods_of, own_nodes

LEN = "__len__"
_FIRST = 3  # of a loader's arguments without a name, before its sampler
_OTHER_ORDERS = {"sampler", "batch_sampler", None}  # which need no length of the set
_MOST_BASES = 6


def without_length(loaded: LoadedConfig, path: Sequence[str]) -> tuple[str, str]:
    """The set that a loader of a fit surely takes, and what to write; empty where none is.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    for loader in sure_loaders(loaded, path):
        lacking = _given(loader, path)
        definition = lacking.definition if lacking else None
        if lacking is None or not isinstance(definition, ast.ClassDef):
            continue
        name = f"{lacking.module}.{lacking.name}"
        if length := method_of(name, LEN, path):
            of = f"{name}.{LEN} ({place_of(length[0], length[1].lineno, path)})"
            said = f"{of} returns nothing, and {loader.said(path)} needs a number"
            return said, returned(length[1])
        of = f"{name} ({place_of(lacking, definition.lineno, path)})"
        return f"{of} has no {LEN}, which {loader.said(path)} needs", how_to_write(definition)
    return "", ""


def returned(length: ast.FunctionDef) -> str:
    """`write return len(self.x)` of a `__len__` that ends with that, and returns nothing."""
    last = length.body[-1]
    is_call = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    if is_call and ast.unparse(last).startswith("len("):
        return f"write return {ast.unparse(last)}"
    return "end it with return NUMBER, the number of samples"


def how_to_write(definition: ast.ClassDef, kept: str = "") -> str:
    """`write in it def __len__(self): return len(self.x)`, of what its `__getitem__` indexes.

    Args:
        definition: The class.
        kept: What is surely indexed, where that is known better than by the text.
    """
    letters = {it: it.replace("_", "").lower() for it in methods_of(definition)}
    meant = [it for it, word in letters.items() if word == "len"]
    if len(meant) == 1:
        return f"rename {meant[0]} (line {methods_of(definition)[meant[0]].lineno}) to {LEN}"
    getter = methods_of(definition).get(GETS)
    indexed = indexed_by_number(getter) if getter else []
    kept = kept or next(iter(indexed), "")
    if not kept:
        return f"write in it def {LEN}(self), which returns the number of samples"
    return f"write in it def {LEN}(self): return len(self.{kept})"


def indexed_by_number(getter: ast.FunctionDef) -> list[str]:
    """`x` of each `self.x[index]` and `self.x.iloc[index]` in a `__getitem__`, in their order."""
    taken = [it.arg for it in (*getter.args.posonlyargs, *getter.args.args)]
    if len(taken) < 2 or any(_stores(it, taken[1]) for it in ast.walk(getter)):
        return []
    found = []
    for node in own_nodes(getter.body):
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == taken[1]:
            words = ast.unparse(node.value).removesuffix(".iloc").split(".")
            if len(words) == 2 and words[0] == taken[0]:
                found.append(words[1])
    return list(dict.fromkeys(found))


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _given(loader: SureLoader, path: Sequence[str]) -> Located | None:
    """The set without a length that a loader has; None where it may have another."""
    named = {it.arg: it.value for it in loader.call.keywords}
    if _OTHER_ORDERS & named.keys() or len(loader.call.args) > _FIRST:
        return None
    value = next(iter(loader.call.args), named.get("dataset"))
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        known = assigned_values(loader.data, value.attr, path)
        answers = [_lacking(it, of, path) for of, it in known]
        return answers[0] if answers and all(answers) else None
    return _lacking(made(value, loader.method), loader.located, path)


def _lacking(value: ast.expr | None, located: Located, path: Sequence[str]) -> Located | None:
    """The class without a length, or with none that is a number, that a call makes one of."""
    if not isinstance(value, ast.Call):
        return None
    name = f"{located.module}.{ast.unparse(value.func)}"
    found = locate(name, path) if name.replace(".", "").isidentifier() else None
    if found is None:
        return None
    length = method_of(name, LEN, path)
    is_lacking = gives_value(length[1]) is False if length else lacks_method(name, LEN, path)
    return found if is_lacking else None


def assigned_values(
    dotted: str, name: str, path: Sequence[str], steps: int = _MOST_BASES
) -> list[tuple[Located, ast.expr | None]]:
    """What `self.NAME` is set to, with the class whose text has it; None where it is unknown."""
    found = locate(dotted, path) if steps else None
    definition = found.definition if found else None
    if found is None or not isinstance(definition, ast.ClassDef) or is_lightnings(found.module):
        return []
    values: list[tuple[Located, ast.expr | None]] = []
    known: set[int] = set()
    for node in ast.walk(definition):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for it in (it for it in targets if ast.unparse(it) == f"self.{name}"):
                known.add(id(it))
                values += [(found, node.value)] if node.value is not None else []
        elif isinstance(node, ast.Attribute) and node.attr == name:
            if isinstance(node.ctx, ast.Store) and id(node) not in known:
                values.append((found, None))  # by a loop, of a tuple
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            values.append((found, None))
    for base in map(ast.unparse, definition.bases):
        values += assigned_values(f"{found.module}.{base}", name, path, steps - 1)
    return values
