"""Steps of a model that no call of Lightning's fits, and losses without a gradient, by the text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.class_kind import method_of, place_of
from hpc_train.config.method_signatures import BY_HAND, own_nodes

# What Lightning gives by position (loops/training_epoch_loop.py, evaluation_loop.py), at most.
_GIVEN = ("batch", "batch_idx")
_OF_SEVERAL = "dataloader_idx"  # beside them in all but a training, of several loaders
# With one of these a class may make something else of the loss than backward().
_OWN_WAYS = ("backward", "optimizer_step", "training_step_end")
_WITHOUT_GRADIENT = ("detach", "item")


def wrong_step(class_path: str, name: str, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong with what a step surely takes, and what to write; empty where nothing is."""
    found = method_of(class_path, name, path)
    if found is None:
        return "", ""
    method = found[1]
    where = f"{class_path}.{name} ({place_of(found[0], method.lineno, path)})"
    hint = f"write def {name}(self, {', '.join(_GIVEN)})"
    positional = [it.arg for it in (*method.args.posonlyargs, *method.args.args)]
    needed = positional[1 : len(positional) - len(method.args.defaults)]
    given = _GIVEN if name == "training_step" else (*_GIVEN, _OF_SEVERAL)
    by_keyword = zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
    if len(positional) < 2 and not method.args.vararg:
        return f"{where} takes no batch", hint
    if len(needed) > len(given):
        return f"{where} needs {', '.join(needed)}, and Lightning gives {', '.join(given)}", hint
    if keywords := [it.arg for it, default in by_keyword if default is None]:
        said = f"{where} needs {', '.join(keywords)} by keyword, and Lightning gives none"
        return said, hint
    return "", ""


def detached_loss(definition: ast.ClassDef) -> tuple[int, str] | None:
    """The line where training_step gives a loss that surely has no gradient, and what to write.

    None wherever it, or a base that is not Lightning's, may train in a way of its own.
    """
    if definition.decorator_list or definition.keywords or not definition.bases:
        return None
    if not all(ast.unparse(it).rpartition(".")[2] == "LightningModule" for it in definition.bases):
        return None
    methods = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
    method = methods.get("training_step")
    if method is None or method.decorator_list or {*_OWN_WAYS} & set(methods):
        return None
    if any(word in ast.unparse(definition) for word in (*BY_HAND, "manual_backward")):
        return None
    nodes = list(own_nodes(method.body))
    given = [it.value for it in nodes if isinstance(it, ast.Return) and it.value is not None]
    losses = [_detached(it) for it in given]
    if not losses or None in losses or any(isinstance(it, ast.Yield) for it in nodes):
        return None
    return losses[0]


def _detached(value: ast.expr) -> tuple[int, str] | None:
    """The line of `X.detach()`, also as a dict's "loss", and what to write in its place."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        named = [it for key, it in pairs if isinstance(key, ast.Constant) and key.value == "loss"]
        found = _detached(named[0]) if len(named) == 1 and None not in value.keys else None
        return (found[0], found[1].replace("return ", '"loss": ', 1)) if found else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if value.func.attr not in _WITHOUT_GRADIENT or value.args or value.keywords:
        return None
    return value.lineno, f"write return {ast.unparse(value.func.value)}"
