"""A script that starts its ranks as processes of its own, while hpc-train starts one for each.

As in PyTorch's tutorials "Multi GPU training with DDP" (`mp.spawn`) and "Writing Distributed
Applications with PyTorch" (a `Process` for each rank).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.script_call_arguments import sure_calls

_SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
_PROCESSES = ("torch.multiprocessing.Process", "multiprocessing.Process")
_NPROCS = 2  # its place among the arguments: (fn, args, nprocs)
_GROUP = "init_process_group"
_MOST_CALLS = 4  # of functions that call functions
# Where others train, the job does not look at what is started.
_OTHERS = ("Trainer", "LightningCLI", "Fabric", "Session", "Accelerator")


def sure_spawn(tree: ast.Module, *, nodes: int, gpus: int) -> tuple[int, str, str] | None:
    """The line of a call that each rank comes to and ends at, what is wrong, and what to write."""
    if not words_in(tree).isdisjoint(_OTHERS):
        return None
    sure = {it.lineno for it in sure_calls(tree)}
    found = (
        it for it in spawned_ranks(tree, nodes=nodes, gpus=gpus, counted=True) if it[0] in sure
    )
    return next(found, None)


def spawned_ranks(
    tree: ast.Module, *, nodes: int, gpus: int, counted: bool = False
) -> Iterator[tuple[int, str, str]]:
    """The line of each call that may start ranks, what is wrong with it, and what to write.

    Args:
        nodes: On which the script is started.
        gpus: Or ranks, of each.
        counted: Only those of which the text tells that they start more than one.
    """
    names = imported_names(tree)
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        first, dot, rest = ast.unparse(call.func).partition(".")
        called = f"{names.get(first, first)}{dot}{rest}"
        count = _count(call, tree) if called in _SPAWNS else None
        is_rank = called in _PROCESSES and not counted and _makes_group(call, tree)
        if is_rank or (called in _SPAWNS and count != 1 and (count or not counted)):
            many = f"{count} processes" if count else "processes"
            said = f"starts {many} ({called}), and hpc-train starts the ranks already"
            yield (
                call.lineno,
                said,
                instead_of_spawn(nodes, count if count and count != gpus else 0),
            )


def spawns_as_typed(tree: ast.Module, arguments: Sequence[str]) -> tuple[int, str]:
    """The line of a call by which a script surely starts its ranks, and what it is; 0 for none.

    Args:
        tree: The script.
        arguments: What it is given: a call may stand under `if args.multiprocessing_distributed`.
    """
    if not words_in(tree).isdisjoint(_OTHERS):
        return 0, ""
    names, sure = imported_names(tree), {id(it) for it in sure_calls(tree)}
    typed = {it.partition("=")[0].lstrip("-").replace("-", "_") for it in arguments}
    for node in ast.walk(tree):
        is_asked = isinstance(node, ast.If) and isinstance(node.test, ast.Attribute)
        if is_asked and isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] in typed:
            sure |= {id(it) for statement in node.body for it in ast.walk(statement)}
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call) and id(it) in sure):
        first, dot, rest = ast.unparse(call.func).partition(".")
        called = f"{names.get(first, first)}{dot}{rest}"
        if called in _SPAWNS and _count(call, tree) != 1:
            return call.lineno, called
    return 0, ""


def instead_of_spawn(nodes: int, ranks: int) -> str:
    """What to do with a script that starts its own ranks.

    Args:
        nodes: On which it is started.
        ranks: How many it starts on each, where the run has another number; else 0.
    """
    add = f"--gpus {ranks} script.launcher=none" if ranks else "script.launcher=none"
    itself = "it starts all ranks itself"
    if nodes > 1:
        itself = "it starts those of each node itself, by NODE_RANK and NNODES, which are set"
    one = "let it train one rank, by RANK, WORLD_SIZE and LOCAL_RANK, which are set"
    return f"add {add}, and {itself}; or {one}"


def spawns(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of torch's functions that start processes."""
    names = imported_names(tree)
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        first, dot, rest = ast.unparse(call.func).partition(".")
        if f"{names.get(first, first)}{dot}{rest}" in _SPAWNS:
            yield call


def spawned_number(call: ast.Call) -> ast.expr | None:
    """What such a call is given as the number of processes; None where it has its default."""
    given: Mapping[str | None, ast.expr] = {it.arg: it.value for it in call.keywords}
    return given.get("nprocs", call.args[_NPROCS] if len(call.args) > _NPROCS else None)


def _count(call: ast.Call, tree: ast.Module) -> int | None:
    """How many processes are started; None where the text does not tell."""
    value = spawned_number(call)
    if value is None:
        has_more = any(it.arg is None for it in call.keywords)
        is_open = has_more or any(isinstance(it, ast.Starred) for it in call.args)
        return None if is_open else 1
    if isinstance(value, ast.Name):
        value = only_value(value.id, call, tree)
    number = value.value if isinstance(value, ast.Constant) else None
    return number if type(number) is int else None


def only_value(name: str, call: ast.Call, tree: ast.Module) -> ast.expr | None:
    """What the only statement that binds a name gives it; None of an argument of a function."""
    nodes = [*ast.walk(tree)]
    around = [it for it in nodes if isinstance(it, ast.FunctionDef) and call in ast.walk(it)]
    given = {it.arg for of in around for it in ast.walk(of.args) if isinstance(it, ast.arg)}
    bound = [it for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)]
    if name in given or sum(it.id == name for it in bound) != 1:
        return None
    made = (it for it in nodes if isinstance(it, ast.Assign))
    of_it = (it.value for it in made if [ast.unparse(to) for to in it.targets] == [name])
    return next(of_it, None)


def _makes_group(call: ast.Call, tree: ast.Module) -> bool:
    """Whether the function that a process runs makes a process group."""
    target = next((it.value for it in call.keywords if it.arg == "target"), None)
    functions = {it.name: it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)}
    waiting, seen = [ast.unparse(target) if target is not None else ""], set[str]()
    for _ in range(_MOST_CALLS):
        bodies = [functions[it] for it in waiting if it in functions and it not in seen]
        seen |= {*waiting}
        called = {
            ast.unparse(it.func).rpartition(".")[2]
            for body in bodies
            for it in ast.walk(body)
            if isinstance(it, ast.Call)
        }
        if _GROUP in called:
            return True
        waiting = [*called]
    return False
