"""A script that submits a training, in the place of the one that trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config
from hpc_train.config.submitting_scripts import only_submits

_SUBMITTING = ("submit", "submit_sweep", "submit_bench", "run_here")


def check_submits(tree: ast.Module, config: Config, workdir: Path, origins: Origins) -> None:
    """Refuse a script that submits a training itself: each of its ranks would.

    Not so where it does under a condition, which may be that it is no job yet.
    """
    _check_hpc_train(tree, config, origins)
    if config.script.may_take_no_steps:
        return
    path = config.script.path or ""
    line, said, hint = only_submits(workdir / path, path)
    if line:
        raise origins.error("script.path", f": {path}:{line} {said}", hint)


def _check_hpc_train(tree: ast.Module, config: Config, origins: Origins) -> None:
    """Of one that does so by hpc-train."""
    names = {}  # of what it has imported
    for node in ast.walk(tree):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        for it in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            names[it.asname or it.name] = f"{module}.{it.name}".strip(".")
    for node in unconditional(tree.body):
        if not isinstance(node, ast.Call):
            continue
        word, dot, rest = ast.unparse(node.func).partition(".")
        called = f"{names.get(word, '')}{dot}{rest}"
        if called.startswith("hpc_train.") and called.rpartition(".")[2] in _SUBMITTING:
            file = config.script.path
            message = f": {file} submits a training itself (line {node.lineno}: {called})"
            raise origins.error("script.path", message, f"python {file} submits it")


def unconditional(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """What a module does, but for what stands under a condition other than that it is run."""
    for node in body:
        yield node
        is_start = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
        if is_start or not isinstance(node, (ast.If, ast.IfExp, ast.Try, ast.While)):
            yield from unconditional(list(ast.iter_child_nodes(node)))
