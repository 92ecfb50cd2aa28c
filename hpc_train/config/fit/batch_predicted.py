"""A prediction without a predict_step: Lightning's own gives forward the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import lacks_method, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.specs import read_object

_OF_LOADERS = {
    "test_dataloader": "test_step",
    "val_dataloader": "validation_step",
    "train_dataloader": "training_step",
}
_SELF_AND_ONE = 2


def whole_batch_predicted(
    loaded: LoadedConfig, path: Sequence[str], *, without_loader: bool = False
) -> tuple[str, str] | None:
    """What is wrong, with its place, and what to write; None where that is not sure.

    It is where the predicted batches are those of another loader, whose step takes them apart and
    gives `self(...)` one part (lightning/pytorch, LightningModule.predict_step).

    Args:
        path: As `sys.path`, with the user's folder first.
        without_loader: The loader of a prediction is still to be written: as one of the others.
    """
    model, data = (
        read_object(getattr(loaded.config, key), key, loaded.origins)[0]
        for key in ("model", "data")
    )
    if not lacks_method(model, "predict_step", path):
        return None
    found, of_data = locate(model, path), locate(data, path)
    definitions = [it.definition if it else None for it in (found, of_data)]
    own, loaders = (methods_of(it) if isinstance(it, ast.ClassDef) else {} for it in definitions)
    forward = own.get("forward")
    if found is None or forward is None or not _takes_one_part(forward):
        return None
    for name in [*_OF_LOADERS] if without_loader else _same_loaders(loaders):
        step = own.get(_OF_LOADERS[name])
        if step is not None and (taken := _taken_apart(step)):
            said = f"{model} has no predict_step, and Lightning's gives forward"
            where = f"({place_of(found, forward.lineno, path)}) the whole batch, which"
            apart = f"{step.name} takes apart as {taken[0]}"
            write = f"write def predict_step(self, batch, batch_idx): {taken[0]}; return {taken[1]}"
            return f"{said} {where} {apart}", write
    return None


def _takes_one_part(forward: ast.FunctionDef) -> bool:
    args = forward.args
    is_plain = not (args.vararg or args.kwarg or forward.decorator_list)
    needed = len(args.args) - len(args.defaults)
    return is_plain and needed == _SELF_AND_ONE and "isinstance" not in ast.unparse(forward)


def _same_loaders(loaders: dict[str, ast.FunctionDef]) -> list[str]:
    """The loaders that give what `predict_dataloader` gives, by their text."""
    predicted = loaders.get("predict_dataloader")
    if predicted is None:
        return []
    body = list(map(ast.unparse, predicted.body))
    return [
        name
        for name in _OF_LOADERS
        if name in loaders
        and body in ([f"return self.{name}()"], list(map(ast.unparse, loaders[name].body)))
    ]


def _taken_apart(step: ast.FunctionDef) -> tuple[str, str] | None:
    """`x, y = batch` and `self(x)`, as the step has them; None without either."""
    if len(step.args.args) < _SELF_AND_ONE or not step.body:
        return None
    first, batch = step.body[0], step.args.args[1].arg
    if not isinstance(first, ast.Assign) or not isinstance(first.targets[0], ast.Tuple):
        return None
    names = {ast.unparse(it) for it in first.targets[0].elts}
    if ast.unparse(first.value) != batch:
        return None
    for node in ast.walk(step):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("self", "self.forward"):
            given = [ast.unparse(it) for it in node.args]
            if len(given) == 1 and given[0] in names and not node.keywords:
                left = ", ".join(ast.unparse(it) for it in first.targets[0].elts)
                return f"{left} = batch", ast.unparse(node)
    return None
