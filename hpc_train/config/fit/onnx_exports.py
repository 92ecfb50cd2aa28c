"""Models that are exported by torch.onnx once they are trained, without what that needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeGuard

from hpc_train.config.fit.silent_callbacks import lightnings_callback
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.distributions import install
from hpc_train.config.python_text.modules import find_module, has_word
from hpc_train.config.specs import classes_of, read_object
from hpc_train.config.validate import other_environment, search_path_of

_EXPORT = "torch.onnx.export"
_SINCE = (2, 9)  # of torch, whose exporter is onnxscript's unless `dynamo=False`
_MAYBE = (ast.Try, ast.If)  # a call in these may not be reached, or may fail and be caught


def notes_on_exports(
    loaded: LoadedConfig, workdir: Path, python_path: Sequence[str]
) -> Iterator[str]:
    """A line for each class that calls torch.onnx.export, where no onnxscript is installed.

    None where the ranks have another environment than this one.
    """
    config = loaded.config
    if other_environment(config.env) or config.container.image:
        return
    path = search_path_of(config.env, workdir, python_path)
    if find_module("onnxscript", path)[0] is not None:
        return
    for key, spec in classes_of(config):
        class_path, _ = read_object(spec, key, loaded.origins)
        if not has_word(class_path, "onnx", path):
            continue
        found = locate(class_path, path)
        if found is None or not found.definition or lightnings_callback(spec, path):
            continue
        lines = _exports(found.definition)[:1]
        for line in lines if lines and _is_of_onnxscript() else ():
            place = place_of(found, line, path)
            said = f"{place} calls torch.onnx.export, for which onnxscript is needed"
            yield f"{said}, which is not installed: {install('onnxscript')}"


def _is_of_onnxscript() -> bool:
    try:
        numbers = version("torch").split("+")[0].split(".")[:2]
    except PackageNotFoundError:
        return False
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= _SINCE


def _is_export(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == _EXPORT


def _exports(node: ast.AST) -> list[int]:
    """The lines of the calls that are reached wherever their method is called."""
    lines = []
    for below in ast.iter_child_nodes(node):
        if isinstance(below, _MAYBE):
            continue
        if _is_export(below):
            given = {it.arg: it.value for it in below.keywords}
            if None not in given and "dynamo" not in given:
                lines.append(below.lineno)
        lines += _exports(below)
    return lines
