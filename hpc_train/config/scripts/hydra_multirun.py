"""A Hydra app that is to run several trainings: one after another, in the one job.

Source: Hydra's page "Multi-run": the default launcher runs them serially in its own process.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.schema import Config

_SWITCHES = ("-m", "--multirun")
_SEVERAL = re.compile(r"(?P<key>[A-Za-z_][\w./]*)=(?P<values>[^,\s'\"(\[{]+(?:,[^,\s'\"(\[{]+)+)")
_OTHERS = ("hydra/", "hydra.mode", "hydra.launcher", "hydra.sweeper")  # they may run them elsewhere


def notes_on_multirun(config: Config, workdir: Path) -> Iterator[str]:
    """What the job does with them, and how each gets one of its own; nothing of another script."""
    words = [str(it) for it in config.script.args]
    tree = script_tree(workdir / (config.script.path or ""))
    if tree is None or {*_SWITCHES}.isdisjoint(words) or not _is_app(tree):
        return
    found = [it for it in map(_SEVERAL.fullmatch, words) if it]
    if not found or any(it.startswith(_OTHERS) for it in words):
        return
    switch = next(it for it in words if it in _SWITCHES)
    count = math.prod(len(it["values"].split(",")) for it in found)
    names = {it["key"]: it["key"].rpartition(".")[2].replace("/", "_") for it in found}
    if len({*names.values()}) < len(names):
        names = {key: key.replace(".", "_").replace("/", "_") for key in names}
    sweep = " ".join(f"--sweep {names[it['key']]}={it['values']}" for it in found)
    behind = " ".join(f"{key}={{{name}}}" for key, name in names.items())
    yield (
        f"{config.script.path} is given {switch}: Hydra runs {count} trainings one after another in"
        f" this one job, which is one run; for a run each leave {switch} out and write {sweep}"
        f" -- {behind}"
    )


def _is_app(tree: ast.Module) -> bool:
    decorators = (
        it
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for it in node.decorator_list
    )
    is_main = any(re.search(r"(?:^|\.)main\b", ast.unparse(it)) for it in decorators)
    return is_main and "hydra" in words_in(tree)
