"""Packages that are missing, and are imported in a method that every training calls."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import method_of, place_of
from hpc_train.config.python_text.lacking_packages import fix_of_import
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.python_folders import is_own
from hpc_train.config.specs import classes_of, read_object
from hpc_train.config.validate import other_environment, search_path_of

_CALLED = {
    "model": ("__init__", "setup", "training_step", "configure_optimizers", "on_train_start"),
    "data": ("__init__", "prepare_data", "setup", "train_dataloader"),
    "callback": ("__init__", "setup", "on_fit_start", "on_train_start", "on_train_epoch_end"),
}
# An import in one of these may not be reached, or may fail and be caught.
_MAYBE = (ast.If, ast.Try, ast.For, ast.While, ast.With, ast.FunctionDef, ast.ClassDef, ast.Match)


def notes_on_inner_imports(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """Of what the ranks import; nothing where they have another environment than this one."""
    config = loaded.config
    if not (other_environment(config.env) or config.container.image):
        yield from missing_in_methods(loaded, search_path_of(config.env, workdir, sys.path))


def missing_in_methods(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each such package, with its place and what to do.

    Args:
        path: As `sys.path` of the ranks, with the user's folder first.
    """
    told = set()
    for key, spec in classes_of(loaded.config):
        class_path, _ = read_object(spec, key, loaded.origins)
        for name in _CALLED.get(key, _CALLED["callback"]):
            found = method_of(class_path, name, path)
            module = find_module(found[0].module, path)[0] if found else None
            if not found or module is None or not is_own(module.file, path[0]):
                continue
            for line, dotted, names in _imports(found[1]):
                package = dotted.partition(".")[0]
                if package in told or package in sys.stdlib_module_names:
                    continue
                if find_module(package, path)[0] is None:
                    told.add(package)
                    place = place_of(found[0], line, path)
                    said = f"{place} imports {package}, as {class_path}.{name} is called"
                    fix = fix_of_import(dotted, names, module.file or Path(), path)
                    yield f"{said}, and it is not installed: {fix}"


def _imports(method: ast.FunctionDef) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The line, the module and the names of each import that every call comes to."""
    for statement in method.body:
        if isinstance(statement, (*_MAYBE, ast.Return, ast.Raise)):
            return
        if isinstance(statement, ast.Import):
            yield from ((statement.lineno, it.name, ()) for it in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names = tuple(it.name for it in statement.names)
            yield statement.lineno, statement.module, names
