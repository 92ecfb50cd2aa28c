"""Calls that all ranks have to make, where the text has rank 0 alone make them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.class_kind import locate, place_of
from hpc_train.config.load import LoadedConfig
from hpc_train.config.method_signatures import own_nodes
from hpc_train.config.specs import classes_of, read_object

# Of a module, a Trainer, a strategy and torch.distributed.
_COLLECTIVE = ("all_gather", "all_reduce", "barrier", "broadcast", "save_checkpoint")
_RANKS = ("global_rank", "rank", "get_rank()")
_ZERO = ("is_global_zero",)
_DECORATOR = "rank_zero_only"


def rank_zero_notes(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each in the model's and the callbacks' own classes; the ranks would wait for ever.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    named = [(key, spec) for key, spec in classes_of(loaded.config) if key != "data"]
    yield from rank_zero_calls([read_object(spec, key)[0] for key, spec in named], path)


def rank_zero_calls(class_paths: Sequence[str], path: Sequence[str]) -> Iterator[str]:
    """The same of these classes."""
    for class_path in class_paths:
        found = locate(class_path, path)
        if found is None or not isinstance(found.definition, ast.ClassDef):
            continue
        for line, call, under in calls_of_rank_zero(found.definition):
            where = place_of(found, line, path)
            yield (
                f"{where}: {call} stands under {under}, and all ranks have to call it: with several"
                " they wait for each other there; take it out of that condition"
            )


def calls_of_rank_zero(definition: ast.ClassDef) -> Iterator[tuple[int, str, str]]:
    """The line of each, the call, and what lets rank 0 alone come to it."""
    for method in (it for it in definition.body if isinstance(it, ast.FunctionDef)):
        if any(ast.unparse(it).rpartition(".")[2] == _DECORATOR for it in method.decorator_list):
            yield from _calls(method.body, f"@{_DECORATOR}")
            continue
        for node in own_nodes(method.body):
            if isinstance(node, ast.If) and _is_of_zero(node.test):
                yield from _calls(node.body, f"`if {ast.unparse(node.test)}`")


def _calls(body: Sequence[ast.stmt], under: str) -> Iterator[tuple[int, str, str]]:
    for node in own_nodes(body):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = ast.unparse(node.func)
        synced = any(
            it.arg == "sync_dist" and isinstance(it.value, ast.Constant) and it.value.value is True
            for it in node.keywords
        )
        if node.func.attr in ("log", "log_dict") and synced:
            yield node.lineno, f"{name}(..., sync_dist=True)", under
        elif node.func.attr in _COLLECTIVE:
            yield node.lineno, f"{name}(...)", under


def _is_of_zero(test: ast.expr) -> bool:
    """`self.global_rank == 0`, `trainer.is_global_zero` and the like, with nothing beside them."""
    if isinstance(test, ast.Attribute):
        return test.attr in _ZERO
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    is_equal = isinstance(test.ops[0], ast.Eq)
    sides = [test.left, *test.comparators]
    zero = any(isinstance(it, ast.Constant) and it.value == 0 for it in sides)
    ranks = any(ast.unparse(it).rpartition(".")[2] in _RANKS for it in sides)
    return is_equal and zero and ranks
