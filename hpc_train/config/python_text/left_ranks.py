"""What rank 0 alone comes to, since `if rank != 0: return` has sent the other ranks elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.config.python_text.harmless_code import is_of_main
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.rank_tests import (
    asks_for_others,
    asks_for_zero,
    leaves,
    zero_of,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_SOME = re.compile(r"rank|main|master|zero|process_index")
_WITHIN_LOOP = (ast.Continue, ast.Break)


@dataclass(frozen=True)
class Left:
    """A condition at which all ranks but the first leave, and the statements behind it."""

    condition: ast.If
    rest: Sequence[ast.stmt]

    @property
    def under(self) -> str:
        """As it is told: `if rank != 0: return` (line 9)."""
        test, line = ast.unparse(self.condition.test), self.condition.lineno
        if asks_for_zero(self.condition.test):
            return f"the `else: {self._last(self.condition.orelse)}` of line {line}"
        return f"`if {test}: {self._last(self.condition.body)}` (line {line})"

    @property
    def write(self) -> str:
        """What to write instead."""
        zero = f"`if {zero_of(self.condition.test)}:`"
        return f"put what rank 0 does alone under {zero}, and this call behind that"

    @staticmethod
    def _last(body: Sequence[ast.stmt]) -> str:
        return ast.unparse(body[-1]).partition(" ")[0]


def left_in(body: Sequence[ast.stmt]) -> Iterator[Left]:
    """Each in a function's body, or a module's, and in the blocks inside of it."""
    yield from _left(body, (), ())


def _left(
    body: Sequence[ast.stmt], in_loop: Sequence[ast.stmt], behind: Sequence[ast.stmt]
) -> Iterator[Left]:
    """The same of one block.

    Args:
        in_loop: What follows the block in the loop around it.
        behind: What follows it in the function.
    """
    for number, statement in enumerate(body):
        rest = body[number + 1 :]
        if isinstance(statement, ast.If) and (gone := _gone(statement)):
            is_loops = isinstance(gone[-1], _WITHIN_LOOP)
            yield Left(statement, [*rest, *(in_loop if is_loops else behind)])
        is_loop = isinstance(statement, _LOOPS)
        for block in [] if isinstance(statement, _SCOPES) else _blocks(statement):
            yield from _left(block, () if is_loop else [*rest, *in_loop], [*rest, *behind])


def _gone(condition: ast.If) -> Sequence[ast.stmt]:
    """The block by which the other ranks leave; empty where they do not."""
    if asks_for_others(condition.test) and not condition.orelse and leaves(condition.body):
        return condition.body
    if asks_for_zero(condition.test) and leaves(condition.orelse) and not leaves(condition.body):
        return condition.orelse
    return ()


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def methods_of_others(text: ast.AST) -> set[str]:
    """What ranks beside the first may call apart: under an own `if`, or where rank 0 has left."""
    functions = [it for it in ast.walk(text) if isinstance(it, _SCOPES[:2])]
    apart: list[ast.stmt] = []
    for scope in (text, *functions):
        body: list[ast.stmt] = getattr(scope, "body", [])
        for node in own_nodes(body):
            if not isinstance(node, ast.If) or is_of_main(node):
                continue
            if not _OF_SOME.search(ast.unparse(node.test)):
                continue
            is_zero = asks_for_zero(node.test)
            apart += [*([] if is_zero else node.body), *node.orelse]
            apart += body if is_zero and leaves(node.body) else []
    called = _called(apart)
    inside = [line for it in functions if it.name in called for line in it.body]
    return called | _called(inside)


def _called(body: Sequence[ast.stmt]) -> set[str]:
    nodes = (it for statement in body for it in ast.walk(statement))
    return {ast.unparse(it.func).rpartition(".")[2] for it in nodes if isinstance(it, ast.Call)}
