"""A script that submits jobs by submitit, while hpc-train submits a job that runs it in each rank.

As `run_with_submitit.py` of DINO and DeiT, and `submitit_pretrain.py` of MAE (submitit's README,
"An example"; docs/examples.md, `AutoExecutor`).
"""

from __future__ import annotations

import ast
from pathlib import Path

from hpc_train.config.harmless_code import imported_names, imports_of
from hpc_train.config.script_call_arguments import sure_calls
from hpc_train.config.script_tree import script_tree

_EXECUTORS = ("submitit.AutoExecutor", "submitit.SlurmExecutor", "submitit.slurm.SlurmExecutor")
_SUBMITS = ("submit", "map_array")


def submits_jobs(file: Path) -> tuple[int, str, str]:
    """The line that surely submits a job, what is said of it, and what to do; 0 where none is."""
    tree = script_tree(file)
    if tree is None or "submitit" not in {it.partition(".")[0] for it in imports_of(tree)}:
        return 0, "", ""
    names = imported_names(tree)
    calls = [*sure_calls(tree)]
    made = {id(it): name for it in calls if (name := _meant(it, names)) in _EXECUTORS}
    held = {
        ast.unparse(it.targets[0]): made[id(it.value)]
        for it in ast.walk(tree)
        if isinstance(it, ast.Assign) and id(it.value) in made
    }
    for call in calls:
        called = call.func
        if not isinstance(called, ast.Attribute) or called.attr not in _SUBMITS:
            continue
        if maker := held.get(ast.unparse(called.value)) or made.get(id(called.value)):
            said = f"submits a job by itself ({maker}), and each rank would submit one"
            trains = _trained(tree, file.parent)
            what = (
                f"submit {trains} itself" if trains else "submit the script that it starts itself"
            )
            return call.lineno, said, f"{what}, with its arguments behind --"
    return 0, "", ""


def _meant(call: ast.Call, names: dict[str, str]) -> str:
    first, dot, rest = ast.unparse(call.func).partition(".")
    return f"{names.get(first, first)}{dot}{rest}"


def _trained(tree: ast.Module, folder: Path) -> str:
    """The one file beside it that it imports and that can be started; empty for several."""
    names = {it.partition(".")[0] for it in imports_of(tree, also_inner=True) if it[:1] != "."}
    found = []
    for name in sorted(names):
        beside = script_tree(folder / f"{name}.py")
        if beside is not None and "__name__ == '__main__'" in ast.unparse(beside):
            found.append(f"{name}.py")
    return found[0] if len(found) == 1 else ""
