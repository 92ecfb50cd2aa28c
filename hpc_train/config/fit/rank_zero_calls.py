"""Calls that all ranks have to make, where the text has rank 0 alone make them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.left_ranks import left_in, methods_of_others
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.rank_tests import asks_for_zero
from hpc_train.config.specs import classes_of, read_object

# Of a module, a Trainer, a strategy and torch.distributed.
_COLLECTIVE = ("all_gather", "all_reduce", "barrier", "broadcast", "save_checkpoint")
_DECORATOR = "rank_zero_only"
TAKE_OUT = "take it out of that condition"


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
        for line, call, under, write in calls_of_rank_zero(found.definition):
            where = place_of(found, line, path)
            yield (
                f"{where}: {call} stands {under}, and all ranks have to call it: with several"
                f" they wait for each other there; {write}"
            )


def calls_of_rank_zero(definition: ast.ClassDef) -> Iterator[tuple[int, str, str, str]]:
    """The line of each, the call, what lets rank 0 alone come to it, and what to write."""
    for method in (it for it in definition.body if isinstance(it, ast.FunctionDef)):
        if any(ast.unparse(it).rpartition(".")[2] == _DECORATOR for it in method.decorator_list):
            for line, call, _ in _calls(method.body):
                yield line, call, f"under @{_DECORATOR}", TAKE_OUT
            continue
        for node in own_nodes(method.body):
            if isinstance(node, ast.If) and asks_for_zero(node.test):
                for line, call, _ in _calls(node.body):
                    yield line, call, f"under `if {ast.unparse(node.test)}`", TAKE_OUT
        for left in left_in(method.body):
            others = methods_of_others(definition)
            for line, call, name in _calls(left.rest):
                if name not in others:
                    yield line, call, f"behind {left.under}", left.write


def _calls(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str, str]]:
    """The line of each, the call as it is told, and its method."""
    for node in own_nodes(body):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = ast.unparse(node.func)
        synced = any(
            it.arg == "sync_dist" and isinstance(it.value, ast.Constant) and it.value.value is True
            for it in node.keywords
        )
        if node.func.attr in ("log", "log_dict") and synced:
            yield node.lineno, f"{name}(..., sync_dist=True)", node.func.attr
        elif node.func.attr in _COLLECTIVE:
            yield node.lineno, f"{name}(...)", node.func.attr
