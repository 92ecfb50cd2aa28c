"""A script that submits a training, in the place of the one that trains."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config
from hpc_train.config.scripts.sbatch_calls import instead_of_sbatch, only_calls_sbatch, sbatch_calls
from hpc_train.config.scripts.submitting_scripts import only_submits

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
    _check_sbatch(tree, config, workdir, origins)


def notes_on_sbatch(tree: ast.Module, config: Config, workdir: Path) -> Iterator[str]:
    """Of a script that calls sbatch and may train as well."""
    path = config.script.path or ""
    call = next((it for it in sbatch_calls(tree) if not it.is_of_one), None)
    is_alone = config.script.launcher == "none"  # on each node
    ranks = config.slurm.nodes * (1 if is_alone else config.slurm.gpus_per_node)
    only = call is not None and _only_sbatch(tree, workdir / path)
    if (
        call is None or config.script.may_take_no_steps or (ranks < 2 and not only)
    ):  # one that trains may chain a job
        return
    which = "nodes" if is_alone else "ranks"
    said = f"{path}:{call.line} submits a job by itself ({call.shown})"
    said += f", and each of the {ranks} {which} would" if ranks > 1 else ""
    if only:
        yield f"{said}; {instead_of_sbatch(call, tree, workdir, (workdir / path).parent)}"
    else:
        rank = "NODE_RANK" if is_alone else "RANK"
        yield (
            f'{said}; for another job put it under if os.environ["{rank}"] == "0":; one that goes'
            " on with this training hpc-train submits itself"
        )


def _only_sbatch(tree: ast.Module, file: Path) -> bool:
    whole = file.resolve()
    return only_calls_sbatch(tree, whole, [str(whole.parent), *sys.path])


def _check_sbatch(tree: ast.Module, config: Config, workdir: Path, origins: Origins) -> None:
    """Refuse one that surely calls sbatch, and surely trains nothing."""
    file = workdir / (config.script.path or "")
    call = next(sbatch_calls(tree), None)
    if call is None or not call.is_sure or not _only_sbatch(tree, file):
        return
    said = f"{config.script.path}:{call.line} submits a job by itself ({call.shown}) and trains"
    hint = instead_of_sbatch(call, tree, workdir, file.parent)
    raise origins.error("script.path", f": {said} nothing: each rank would submit one", hint)


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
