"""Ranks that a script starts itself, as many as it sees GPUs: none where it sees no GPU.

As of `mp.spawn(worker, nprocs=torch.cuda.device_count())`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.scripts.spawned_ranks import only_value, spawned_number, spawns

COUNT = "torch.cuda.device_count"
_MOST_NAMES = 3


@dataclass(frozen=True)
class CountedGpus:
    """A call that starts as many processes as there are GPUs.

    Attributes:
        line: Of the call.
        given: What is to be written anew: `nprocs`, or a name that is given the count.
        given_in: The line of that.
    """

    line: int
    given: str
    given_in: int

    def instead(self, ranks: int) -> str:
        """What to write for so many ranks."""
        place = "there" if self.given_in == self.line else f"in line {self.given_in}"
        return f"write {self.given}={ranks} {place}".replace("=", " = ", self.given != "nprocs")


def counted_gpus(tree: ast.Module) -> Iterator[CountedGpus]:
    """Each such call, in its order."""
    for call in spawns(tree):
        value, given, line = spawned_number(call), "nprocs", call.lineno
        for _ in range(_MOST_NAMES):
            if isinstance(value, ast.Name):
                given, value = value.id, only_value(value.id, call, tree)
                line = value.lineno if value is not None else 0
        if value is not None and _is_count(value, tree):
            yield CountedGpus(call.lineno, given, line)


def notes_without_gpus(script: str, tree: ast.Module, *, ranks: int, why: str) -> Iterator[str]:
    """A line for each, of a script that starts its ranks itself.

    Args:
        script: As it is shown.
        ranks: How many a node was asked for.
        why: There is no GPU.
    """
    for it in counted_gpus(tree):
        said = f"starts no process: {COUNT}() is 0 ({why})"
        yield f"{script}:{it.line} {said}: {it.instead(ranks)}"


def _is_count(value: ast.expr, tree: ast.Module) -> bool:
    """Whether it is the number of GPUs, or a product with it."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _is_count(value.left, tree) or _is_count(value.right, tree)
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return False
    first, dot, rest = ast.unparse(value.func).partition(".")
    return f"{imported_names(tree).get(first, first)}{dot}{rest}" == COUNT
