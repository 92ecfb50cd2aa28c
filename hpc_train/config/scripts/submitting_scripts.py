"""A script that submits jobs by submitit, while hpc-train submits a job that runs it in each rank.

As `run_with_submitit.py` of DINO and DeiT, and `submitit_pretrain.py` of MAE (submitit's README,
"An example"; docs/examples.md, `AutoExecutor`).
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.python_text.harmless_code import imported_names, imports_of
from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.scripts.script_call_arguments import sure_calls
from hpc_train.config.scripts.submitted_functions import (
    parameters_of,
    submitted_function,
    trains_nothing,
)

_EXECUTORS = ("submitit.AutoExecutor", "submitit.SlurmExecutor", "submitit.slurm.SlurmExecutor")
_SUBMITS = ("submit", "map_array")
_NODES = ("nodes", "num_nodes", "nnodes")
_GPUS = ("ngpus", "gpus", "num_gpus", "gpus_per_node", "ngpus_per_node", "num_gpus_per_node")
_GPUS_ASKED = ("gpus_per_node", "slurm_gpus_per_node", "tasks_per_node", "slurm_ntasks_per_node")
_PARTITION = ("partition",)
_SWITCHES = ("store_true", "store_false")
_OPTION = re.compile(r"--([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class SubmittedScript:
    """What such a script submits, as far as its text and its arguments tell.

    Attributes:
        script: What it starts, as its own path would name it.
        nodes: Of the job; 0 where that is not told.
        gpus: Of a node; 0 where that is not told.
        partition: That was typed; else empty.
        arguments: Those that are not the submitting script's own.
        left_out: Its own that have no other place, as they were typed.
    """

    script: str
    nodes: int = 0
    gpus: int = 0
    partition: str = ""
    arguments: Sequence[str] = ()
    left_out: Sequence[str] = ()

    def command(self) -> str:
        """The command that submits what it starts."""
        shape = (("--nodes", self.nodes), ("--gpus", self.gpus), ("--partition", self.partition))
        words = [word for option, value in shape if value for word in (option, str(value))]
        rest = ["--", *self.arguments] if self.arguments else []
        return shlex.join(["hpc-train", "submit", *words, self.script, *rest])


def submitted_script(file: Path, path: str, arguments: Sequence[str]) -> SubmittedScript | None:
    """What a script of which `submits_jobs` tells a line submits; None where that is not told.

    Args:
        file: The script.
        path: As the user typed it.
        arguments: What it is given.
    """
    tree = script_tree(file)
    call, _ = _submitting(tree)
    if tree is None or call is None:
        return None
    function = submitted_function(call, imported_names(tree), file.parent)
    trains, own = function.file if function else _trained(tree, file.parent), _own_options(tree)
    if not trains or own is None:
        return None
    given, rest, out = _sorted(arguments, own)
    asked = parameters_of(tree)
    gpus = next((asked[it] for it in _GPUS_ASKED if it in asked), "")
    return SubmittedScript(
        script=(Path(path).parent / trains).as_posix(),
        nodes=_number(given, own, _NODES) or _count(asked.get("nodes", "")),
        gpus=_number(given, own, _GPUS) or _count(gpus),
        partition=next(
            (given[it] for it in _PARTITION if it in given), asked.get("slurm_partition", "")
        ),
        arguments=rest,
        left_out=out,
    )


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


def submits_jobs(file: Path) -> tuple[int, str, str]:
    """The line that surely submits a job, what is said of it, and what to do; 0 where none is."""
    tree = script_tree(file)
    call, maker = _submitting(tree)
    if tree is None or call is None:
        return 0, "", ""
    said = f"submits a job by itself ({maker}), and each rank would submit one"
    trains, first = _trained(tree, file.parent), ""
    if function := submitted_function(call, imported_names(tree), file.parent):
        trains, first = function.file, function.how_to_start()
    what = f"submit {trains} itself" if trains else "submit the script that it starts itself"
    hint = f"{what}, with its arguments behind --"
    return call.lineno, said, f"{first}, and {what}" if first else hint


def only_submits(file: Path, path: str) -> tuple[int, str, str]:
    """The same of a script that surely does no more than that; 0 where it may train.

    Args:
        file: The script.
        path: As the user typed it.
    """
    tree = script_tree(file)
    call, maker = _submitting(tree)
    if tree is None or call is None or _names_a_cluster(tree) or not trains_nothing(tree):
        return 0, "", ""
    function = submitted_function(call, imported_names(tree), file.parent)
    found = submitted_script(file, path, ())
    if function is None or found is None:
        return 0, "", ""
    said = f"submits {function.name} of {function.file} as a job ({maker}) and trains nothing"
    said += " itself: each rank would submit that job"
    first = function.how_to_start()
    return call.lineno, said, f"{first}; then {found.command()}" if first else found.command()


def _names_a_cluster(tree: ast.Module) -> bool:
    """Whether it may run what it submits here: AutoExecutor(cluster="debug")."""
    return "cluster" in words_in(tree)


def _submitting(tree: ast.Module | None) -> tuple[ast.Call | None, str]:
    """The call that surely submits a job, and what its executor is; None where none does."""
    if tree is None or "submitit" not in {it.partition(".")[0] for it in imports_of(tree)}:
        return None, ""
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
            return call, maker
    return None, ""


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


def _own_options(tree: ast.Module) -> dict[str, ast.Call] | None:
    """Options that the script itself adds, by name; None where one takes several values."""
    own: dict[str, ast.Call] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".add_argument"):
            continue
        names = [it.value for it in node.args if isinstance(it, ast.Constant)]
        if any(it.arg == "nargs" for it in node.keywords) or len(names) != len(node.args):
            return None
        own |= {str(it)[2:].replace("-", "_"): node for it in names if str(it)[:2] == "--"}
    return own


def _sorted(
    arguments: Sequence[str], own: Mapping[str, ast.Call]
) -> tuple[dict[str, str], list[str], list[str]]:
    """The values of its own options, what is not its own, and its own that have no other place."""
    given, rest, out = dict[str, str](), list[str](), list[str]()
    words = [*map(str, arguments)]
    while words:
        word = words.pop(0)
        found = _OPTION.fullmatch(word)
        name = found[1].replace("-", "_") if found else ""
        if not found or name not in own:
            rest.append(word)
            continue
        typed = [word]
        if found[2] is None and not _is_switch(own[name]) and words:
            typed.append(words.pop(0))
        given[name] = found[2] if found[2] is not None else typed[-1]
        out += [] if name in (*_NODES, *_GPUS, *_PARTITION) else typed
    return given, rest, out


def _is_switch(call: ast.Call) -> bool:
    actions = [it.value for it in call.keywords if it.arg == "action"]
    return any(isinstance(it, ast.Constant) and it.value in _SWITCHES for it in actions)


def _number(given: Mapping[str, str], own: Mapping[str, ast.Call], names: Sequence[str]) -> int:
    """What one of the options is given, or has by default; 0 where neither tells."""
    for name in (it for it in names if it in own):
        defaults = [it.value for it in own[name].keywords if it.arg == "default"]
        default = next((str(it.value) for it in defaults if isinstance(it, ast.Constant)), "")
        text = given.get(name, default)
        return int(text) if text.isdigit() else 0
    return 0
