"""An optimizer and its schedule returned side by side, which Lightning takes for two optimizers.

Source: pytorch_lightning/core/optimizer.py (`_configure_optimizers`): of a pair each has to be a
list, and all of one list an optimizer; anything else is a MisconfigurationException.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from hpc_train.config.fit.several_optimizers import is_optimizer
from hpc_train.config.python_text.method_signatures import methods_of, own_nodes
from hpc_train.config.python_text.modules import full_name

_SCHEDULE = re.compile(r"torch\.optim\.lr_scheduler\.(\w+)")
_PLATEAU = "ReduceLROnPlateau"


def paired_schedule(definition: ast.ClassDef, imports: Mapping[str, str]) -> tuple[int, str, str]:
    """The line of such a pair, the pair, and what to write; 0 where it may be another thing.

    Args:
        imports: Of the class's file: what its names stand for.
    """
    method = methods_of(definition).get("configure_optimizers")
    if method is None or method.decorator_list or not isinstance(method.body[-1], ast.Return):
        return 0, "", ""
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    value = returns[0].value if len(returns) == 1 else None
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != 2:
        return 0, "", ""
    made = _made_once(method)
    first, second = (made.get(ast.unparse(it), it) for it in value.elts)
    found = _SCHEDULE.fullmatch(_called(second, imports))
    if not found or not is_optimizer(first, imports):
        return 0, "", ""
    optimizer, schedule = map(ast.unparse, value.elts)
    write = f"return [{optimizer}], [{schedule}]"
    if found[1] == _PLATEAU:
        kept = f'{{"scheduler": {schedule}, "monitor": "val_loss"}}'
        write = f'return {{"optimizer": {optimizer}, "lr_scheduler": {kept}}}'
    pair = f"{optimizer}, {schedule}"
    return returns[0].lineno, f"[{pair}]" if isinstance(value, ast.List) else pair, write


def _made_once(method: ast.FunctionDef) -> dict[str, ast.expr]:
    """By name what is bound to it, where that is done once and by a plain assignment."""
    stores = [
        it.id
        for it in own_nodes(method.body)
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
    ]
    return {
        it.targets[0].id: it.value
        for it in method.body
        if isinstance(it, ast.Assign)
        and len(it.targets) == 1
        and isinstance(it.targets[0], ast.Name)
        and stores.count(it.targets[0].id) == 1
    }


def _called(node: ast.expr, imports: Mapping[str, str]) -> str:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return full_name(called, imports) if called else ""
