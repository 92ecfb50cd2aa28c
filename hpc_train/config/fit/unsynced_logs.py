"""Values of a validation that each rank logs of its own part of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.specs import classes_of, read_object

_STEPS = ("validation_step", "test_step")
_GATHERS = re.compile(r"gather|reduce\(|broadcast")
_DECIDED = ("sync_dist", "rank_zero_only")


def unsynced_notes(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line a step of the model, with several ranks: what is logged and watched is rank 0's part.

    Source: lightning.ai, "Validation and test step: sync_dist". A metric of torchmetrics that is
    logged as an object is gathered by itself.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    config = loaded.config
    ranks = (config.slurm.nodes or 1) * (config.slurm.gpus_per_node or 1)
    spec = dict(classes_of(config)).get("model") if ranks > 1 else None
    found = locate(read_object(spec, "model")[0], path) if spec else None
    if found is None or not isinstance(found.definition, ast.ClassDef):
        return
    if _GATHERS.search(ast.unparse(found.definition)):
        return  # some of its values may be the same on all ranks
    for method in found.definition.body:
        if not isinstance(method, ast.FunctionDef) or method.name not in _STEPS:
            continue
        calls = list(unsynced_calls(method))
        if calls:
            name, line = calls[0]
            more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
            yield (
                f"{place_of(found, line, path)}: {name}{more} in {method.name} without"
                f" sync_dist=True: with {ranks} ranks it is the value of rank 0's part of the data"
            )


def unsynced_calls(method: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """`self.log("val_loss")` and its line, of values that are surely no metric as an object."""
    computed = {
        name.id
        for node in own_nodes(method.body)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.BinOp)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    for node in own_nodes(method.body):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "self.log":
            continue
        name, value = _argument(node, 0, "name"), _argument(node, 1, "value")
        if (
            name is None
            or value is None
            or any(it.arg in (*_DECIDED, None) for it in node.keywords)
        ):
            continue
        is_own = isinstance(value, ast.Name) and value.id in computed
        if is_own or isinstance(value, ast.Call | ast.BinOp):
            yield f"self.log({ast.unparse(name)})", node.lineno


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    given = call.args[place : place + 1] if len(call.args) > place else []
    return next(iter(given), next((it.value for it in call.keywords if it.arg == name), None))
