"""A script that starts ranks by a launcher of its own, while hpc-train starts one for each rank."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.counted_gpus import COUNT, counted_gpus, notes_without_gpus
from hpc_train.config.scripts.self_submitting import notes_on_sbatch
from hpc_train.config.scripts.spawned_ranks import spawned_ranks
from hpc_train.config.scripts.submitting_scripts import submits_jobs, submitted_script
from hpc_train.config.scripts.written_commands import started_commands

_LAUNCHERS = re.compile(
    r"(^|/)torchrun$|^torch\.distributed\.(run|launch)$|(^|/)(accelerate|deepspeed)$"
)

_OF_RANK = re.compile(r"'(?:LOCAL_|GROUP_)?RANK'|'WORLD_SIZE'|'(?:TORCHELASTIC|HPC_TRAIN)_\w+'")


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


def _outside_of_ranks(tree: ast.Module) -> set[ast.AST]:
    """What stands under `if "RANK" not in os.environ`, to which no rank comes."""
    asked = (it for it in ast.walk(tree) if isinstance(it, ast.If))
    of_rank = (it for it in asked if _OF_RANK.search(ast.unparse(it.test)))
    return {node for it in of_rank for part in it.body for node in ast.walk(part)}


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
    if tree is None:
        return
    yield from notes_on_sbatch(tree, config, workdir)
    on_cpu = config.script.accelerator == "cpu"
    if config.script.launcher == "none":
        why, ranks = "script.accelerator=cpu", config.slurm.gpus_per_node
        path = config.script.path or ""
        yield from notes_without_gpus(path, tree, ranks=ranks, why=why) if on_cpu else ()
        return
    counted = {it.line: it for it in counted_gpus(tree)} if on_cpu else {}
    told = _outside_of_ranks(tree)
    for call, started in started_commands(tree):
        launcher, script = started_launcher(started)
        if launcher and call not in told:
            told.add(call)
            yield (
                f"{config.script.path}:{call.lineno} starts {launcher}, and hpc-train starts"
                f" the ranks already: {instead_of(launcher, script)}"
            )
    slurm = config.slurm
    for line, said, hint in spawned_ranks(tree, nodes=slurm.nodes, gpus=slurm.gpus_per_node):
        if line in counted:
            number = counted[line].instead(slurm.gpus_per_node)
            hint = hint.replace("add ", f"{number} ({COUNT}() is 0 on CPUs), add ", 1)
        yield f"{config.script.path}:{line} {said}: {hint}"
