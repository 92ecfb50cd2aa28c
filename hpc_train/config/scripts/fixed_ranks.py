"""Numbers of ranks that a script has written down for all of its ranks.

torch reads RANK and WORLD_SIZE, which each rank is given, where a call of `init_process_group` has
neither (torch's manual, torch.distributed, "Environment variable initialization"). Written down
they are those of one rank: the others wait for it until a timeout.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hpc_train.config.meant_words.launcher_variables import ENVIRON

_GROUP = "init_process_group"
_OF_A_RANK = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")
_CONDITIONS = (ast.If, ast.IfExp, ast.Try, ast.Match)  # what may not be run in a job
_LEAVE_OUT = "leave rank, world_size and init_method out: each rank has them in its environment"


def fixed_ranks(tree: ast.Module, *, ranks: int) -> Iterator[tuple[int, str, str]]:
    """The line of each, what is wrong with it, and what to write.

    Args:
        ranks: How many run the script, on all nodes together.
    """
    for node in surely_run(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == _GROUP:
            said = _of_group({it.arg: _literal(it.value) for it in node.keywords}, ranks)
            if said:
                yield node.lineno, said, _LEAVE_OUT
        elif isinstance(node, ast.Assign):
            name = _variable(node.targets[0])
            if said := _of_variable(name, _literal(node.value), ranks):
                yield node.lineno, said, "leave that line out: hpc-train sets it for each rank"


def surely_run(node: ast.AST) -> Iterator[ast.AST]:
    """All that stands under no condition; `if __name__ == "__main__"` is none."""
    for child in ast.iter_child_nodes(node):
        is_main = isinstance(child, ast.If) and "__name__" in ast.unparse(child.test)
        if not isinstance(child, _CONDITIONS) or is_main:
            yield child
            yield from surely_run(child)


def _literal(value: ast.expr) -> object:
    return value.value if isinstance(value, ast.Constant) else None


def _of_group(given: dict[str | None, object], ranks: int) -> str:
    rank, size = given.get("rank"), given.get("world_size")
    if type(size) is int and size not in (-1, ranks):
        has = "1 rank" if ranks == 1 else f"{ranks} ranks"
        return f"gives {_GROUP} world_size={size}, and this run has {has}"
    if type(rank) is int and rank >= 0 and ranks > 1:
        return f"gives {_GROUP} rank={rank} in each of the {ranks} ranks"
    return ""


def _variable(target: ast.expr) -> str:
    """`RANK` of `os.environ["RANK"]`; empty for another target."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
        return ""
    is_environment = ast.unparse(target.value) in ENVIRON
    return str(target.slice.value) if is_environment else ""


def _of_variable(name: str, value: object, ranks: int) -> str:
    if not isinstance(value, str):
        return ""
    if name == "WORLD_SIZE" and value.isdigit() and int(value) != ranks:
        return f"sets {name} to {value}, and this run has {ranks} ranks"
    is_of_one = name in _OF_A_RANK and value.isdigit() and ranks > 1
    return f"sets {name} to {value} in each of the {ranks} ranks" if is_of_one else ""
