"""A script that starts ranks by a launcher of its own, while hpc-train starts one for each rank."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpc_train.config.schema import Config
from hpc_train.config.script_tree import script_tree
from hpc_train.config.spawned_ranks import spawned_ranks
from hpc_train.config.submitting_scripts import submits_jobs, submitted_script

_LAUNCHERS = re.compile(
    r"(^|/)torchrun$|^torch\.distributed\.(run|launch)$|(^|/)(accelerate|deepspeed)$"
)
CALLS = re.compile(r"os\.(system|popen)|subprocess\.(run|call|check_call|check_output|Popen)")
_OF_PYTHON = "python"  # in the place of sys.executable


def started_launcher(command: Any) -> tuple[str, str]:
    """The launcher by which a command of a shell, or its words, starts ranks, and their script.

    srun is one where it starts Python: in a step of the job it waits for the nodes of the job
    itself, without an end (srun(1), --overlap).
    """
    if isinstance(command, str | os.PathLike):
        lines = [line.split() for line in re.split(r"&&|[|][|]|[;|\n]", str(command))]
    else:
        lines = [[str(word) for word in command]]
    for line in lines:
        words = [*itertools.dropwhile(lambda word: "=" in word, line)]
        script = next((word for word in words if word.endswith(".py")), "")
        module = words.index("-m") + 1 if "-m" in words else len(words)
        named_ones = [*words[:2], *words[module : module + 1]]  # torchrun, python torchrun, -m
        if launcher := next((word for word in named_ones if _LAUNCHERS.search(word)), ""):
            return launcher, script
        if words and Path(words[0]).name == "srun" and script and "--overlap" not in words:
            return words[0], script
    return "", ""


def instead_of(launcher: str, script: str) -> str:
    """What to do with the script that a rank would start by a launcher."""
    itself = f"submit {script or 'the script that it starts'} itself, with its arguments behind --"
    if Path(launcher).name == "srun":  # which waits in a process a node as well
        return itself
    return f"{itself}; or let this script start all ranks of a node: script.launcher=none"


def inner_launcher_notes(config: Config, workdir: Path) -> Iterator[str]:
    """Of each call with a command that the text holds; it may be one that is never reached."""
    file = workdir / (config.script.path or "")
    tree = script_tree(file)
    line, said, hint = submits_jobs(file)
    if line:
        given = [str(it) for it in config.script.args]
        found = submitted_script(file, config.script.path or "", given)
        command = f": {found.command()}" if found and (given or found.nodes or found.gpus) else ""
        yield f"{config.script.path}:{line} {said}: {hint}{command}"
    if tree is None or config.script.launcher == "none":
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and CALLS.fullmatch(ast.unparse(call.func)):
            launcher, script = started_launcher(written_command(call.args[0]))
            if launcher:
                yield (
                    f"{config.script.path}:{call.lineno} starts {launcher}, and hpc-train starts"
                    f" the ranks already: {instead_of(launcher, script)}"
                )
    slurm = config.slurm
    for line, said, hint in spawned_ranks(tree, nodes=slurm.nodes, gpus=slurm.gpus_per_node):
        yield f"{config.script.path}:{line} {said}: {hint}"


def written_command(node: ast.expr) -> str | list[str]:
    """A command as far as it stands in the text."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_word(it) for it in node.elts]
    if isinstance(node, ast.JoinedStr):
        return "".join(_word(it) for it in node.values)
    return _word(node) if isinstance(node, ast.Constant) else ""


def _word(node: ast.expr) -> str:
    if ast.unparse(node) == "sys.executable":
        return _OF_PYTHON
    return str(node.value) if isinstance(node, ast.Constant) else "X"
