"""Names that a module of the user's uses and nothing binds, told from its text."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, derives_from, locate, place_of
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.syntax_words import lines_of_notebook
from hpc_train.config.specs import classes_of, read_object
from hpc_train.config.words import did_you_mean

# What people call by these names, so that an import is what was forgotten.
_IMPORTS = {
    "DataLoader": "from torch.utils.data import DataLoader",
    "Dataset": "from torch.utils.data import Dataset",
    "F": "import torch.nn.functional as F",
    "L": "import lightning as L",
    "Path": "from pathlib import Path",
    "TensorDataset": "from torch.utils.data import TensorDataset",
    "nn": "from torch import nn",
    "np": "import numpy as np",
    "optim": "from torch import optim",
    "partial": "from functools import partial",
    "pd": "import pandas as pd",
    "pl": "import pytorch_lightning as pl",
    "plt": "import matplotlib.pyplot as plt",
    "random_split": "from torch.utils.data import random_split",
    "tqdm": "from tqdm import tqdm",
    "transforms": "from torchvision import transforms",
}
_MODULES = {
    *("collections", "copy", "csv", "functools", "glob", "itertools", "json", "logging", "math"),
    *("os", "pickle", "random", "re", "shutil", "sys", "time", "torch", "torchmetrics"),
    *("torchvision", "warnings", "yaml"),
}
# What Lightning gives each LightningModule, and a notebook may have had as a global.
_OF_LIGHTNING = {
    *("device", "dtype", "trainer", "hparams", "logger", "current_epoch", "global_step"),
    *("global_rank", "local_rank", "log", "log_dict", "parameters", "named_parameters"),
    *("save_hyperparameters", "optimizers", "lr_schedulers", "manual_backward", "training"),
}
# What IPython alone has.
_OF_NOTEBOOK = {
    "display": "display is a notebook's alone: write print(...), or take the line out",
}
# With one of these a name may come from elsewhere, or its absence is expected.
_OTHER_WAYS = re.compile(
    r"(?<![.\w])(?:globals|locals|vars|exec|eval)\s*\("
    r"|\bNameError|\bbuiltins|sys\.modules\["
)
# What each training calls, once at least.
_CALLED = ("__init__", "training_step", "configure_optimizers", "train_dataloader")
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_LATER = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.GeneratorExp, ast.ListComp, ast.SetComp)
_MAYBE = (*_LATER, ast.DictComp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class UndefinedName:
    """One of them, where it is first used.

    Attributes:
        is_sure: Whether each training comes to it.
    """

    name: str
    line: int
    fix: str
    is_sure: bool


def import_of(name: str) -> str:
    """The import that is forgotten where this name is not defined; empty for others."""
    return of_project(_IMPORTS.get(name, f"import {name}" if name in _MODULES else ""))


def all_undefined(
    loaded: LoadedConfig, path: Sequence[str]
) -> Iterator[tuple[str, str, UndefinedName]]:
    """Of the modules of a config's classes: the key of the class, and what is said with its place.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    told = set()
    for key, spec in classes_of(loaded.config):
        found = locate(read_object(spec, key)[0], path)
        if found is None:
            continue
        for it in undefined_names(found, path):
            place = place_of(found, it.line, path)
            if place not in told or it.is_sure:
                told.add(place)
                said = f"{place}: {it.name} is defined nowhere in {place.rpartition(':')[0]}"
                yield f"{key}.class_path", said, it


def undefined_names(found: Located, path: Sequence[str]) -> tuple[UndefinedName, ...]:
    """Of the module that has a class; none where its text may get names by other ways.

    Args:
        path: As `sys.path`, with the user's folder first; modules elsewhere are not looked at.
    """
    module = find_module(found.module, path)[0]
    if module is None or module.file is None or found.names is None:
        return ()
    if found.names.open_ended or not module.file.is_relative_to(path[0]):
        return ()
    text = module.file.read_text(encoding="utf-8", errors="replace")
    if _OTHER_WAYS.search(text):
        return ()
    try:
        told = _in_text(text, str(module.file), found.name)
    except SyntaxError:  # told elsewhere, with its line
        return ()
    return tuple(
        replace(it, fix=f"write self.{it.name}") if _is_lightnings(it, found, path) else it
        for it in told
    )


def fix_in_notebook(name: str, text: str) -> str:
    """What to do about a name that a notebook alone has; empty of others.

    Args:
        text: Of the file.
    """
    if name == "get_ipython":
        return f"leave out what a notebook alone runs: {lines_of_notebook(text)}"
    return _OF_NOTEBOOK.get(name, "")


def _is_lightnings(it: UndefinedName, found: Located, path: Sequence[str]) -> bool:
    """Whether a method of a LightningModule reads it, which has one of that name as its own."""
    names = found.names
    if it.name not in _OF_LIGHTNING or names is None:
        return False
    for kind in names.definitions.values():
        methods = kind.body if isinstance(kind, ast.ClassDef) else []
        takes_self = any(_is_method_at(method, it.line) for method in methods)
        if takes_self and derives_from(
            Located(found.module, kind.name, names), "LightningModule", path
        ):
            return True
    return False


def _is_method_at(statement: ast.stmt, line: int) -> bool:
    """Whether it is a method with `self` that has this line in it."""
    if not isinstance(statement, ast.FunctionDef) or not statement.args.args:
        return False
    is_there = statement.body[0].lineno <= line <= (statement.end_lineno or line)
    return is_there and statement.args.args[0].arg == "self"


@lru_cache(maxsize=32)  # for the refusals, and again for the notes
def _in_text(text: str, file: str, class_name: str) -> tuple[UndefinedName, ...]:
    table = symtable.symtable(text, file, "exec")
    tree = ast.parse(text)
    bound = {it.get_name() for it in table.get_symbols() if it.is_local() or it.is_imported()}
    tables = list(_all_tables(table))
    symbols = [it for one in tables for it in one.get_symbols()]
    bound |= {it.get_name() for it in symbols if it.is_declared_global()}
    # A function that is called `top` is a module for symtable (CPython's Lib/symtable.py, 3.11).
    unbound = (it for it in symbols if it.is_global() and not it.is_local())
    asked = {it.get_name() for it in unbound if it.is_referenced()}
    asked -= bound | {*dir(builtins), "self"}  # a method without self is told as that
    asked = {name for name in asked if not (name.startswith("__") and name.endswith("__"))}
    if not asked:
        return ()
    sure = {*_surely_used(tree, class_name)}
    own = dict(_own_names(tree))
    told = {}
    for node in _evaluated(tree):
        if node.id in asked and node.id not in told:
            near = did_you_mean(node.id, sorted(bound), cutoff=0.8)
            if node.id in own.get((node.lineno, node.col_offset), ()):
                near = f"did you mean self.{node.id}?"
            known = import_of(node.id) or fix_in_notebook(node.id, text)
            fix = known or near or f"define {node.id}, or import it"
            told[node.id] = UndefinedName(node.id, node.lineno, fix, node.id in sure)
    return tuple(told.values())


def _own_names(tree: ast.Module) -> Iterator[tuple[tuple[int, int], set[str]]]:
    """Where a method reads a name: what its class assigns to self, or defines as a method."""
    for kind in (it for it in ast.walk(tree) if isinstance(it, ast.ClassDef)):
        methods = [it for it in kind.body if isinstance(it, ast.FunctionDef)]
        names = {it.name for it in methods if not it.decorator_list}
        for node in ast.walk(kind):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names |= {node.attr} if ast.unparse(node.value) == "self" else set()
        for method in methods:
            if method.args.args[:1] and method.args.args[0].arg == "self":
                reads = (it for it in ast.walk(method) if isinstance(it, ast.Name))
                yield from (((it.lineno, it.col_offset), names) for it in reads)


def _all_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _all_tables(child)


def _evaluated(tree: ast.AST) -> Iterator[ast.Name]:
    """The names that are read, without those of annotations, which may never be."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node
            elif isinstance(node, ast.AST):
                yield from _evaluated(node)


def _surely_used(tree: ast.Module, class_name: str) -> Iterator[str]:
    """Names in what no condition, loop or function of its own stands around."""
    for statement in tree.body:
        if isinstance(statement, _PLAIN):
            yield from _names_in(statement)
        if not isinstance(statement, ast.ClassDef):
            continue
        yield from (name for base in statement.bases for name in _names_in(base))
        if statement.name != class_name:
            continue
        for method in (it for it in statement.body if isinstance(it, ast.FunctionDef)):
            if method.name in _CALLED and not method.decorator_list:
                yield from _in_body(method.body)


def _in_body(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, _PLAIN):
            yield from _names_in(statement)
        leaves = (ast.Return, ast.Raise)
        if any(isinstance(it, leaves) for it in own_nodes([statement])):
            return  # what stands below may not be reached


def _names_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, _MAYBE):
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if child is not getattr(node, "annotation", None):
            yield from _names_in(child)
