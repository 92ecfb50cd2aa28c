"""Samplers of a train loader whose order cannot be continued: what to write, and where they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from hpc_train.config.python_text.class_kind import Located, derives_from, locate, method_of
from hpc_train.config.python_text.method_signatures import own_nodes

PLAIN_ORDER = "use shuffle=True or shuffle=False"
# What keeps to the samples, or the weights, that a sampler of torch's is there for.
INSTEAD: Mapping[str, str] = {
    "SubsetRandomSampler": (
        "give the DataLoader torch.utils.data.Subset(DATASET, INDICES) and shuffle=True"
    ),
    "WeightedRandomSampler": (
        "use shuffle=True and weights in the loss"
        " (CrossEntropyLoss(weight=...) or BCEWithLogitsLoss(pos_weight=...))"
    ),
}
# Of others of torch's, which stand for what a shuffle gives.
_SHUFFLES = ("RandomSampler", "SequentialSampler", "DistributedSampler")
# Before a loader is asked for, each in every training.
_BEFORE = ("__init__", "setup")
# By the words of a loss, how it takes the weights of classes (torch.nn, torch.nn.functional).
_WEIGHTS: Mapping[str, str] = {
    "CrossEntropyLoss": "CrossEntropyLoss(weight=...)",
    "cross_entropy": "cross_entropy(..., weight=...)",
    "NLLLoss": "NLLLoss(weight=...)",
    "nll_loss": "nll_loss(..., weight=...)",
    "BCEWithLogitsLoss": "BCEWithLogitsLoss(pos_weight=...)",
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits(..., pos_weight=...)",
}
OTHER_ORDER = "for another order give the DataLoader an IterableDataset with"


def order_refusal(sampler: str, instead: str) -> tuple[str, str]:
    """What is said of a sampler of that name, and what to write."""
    reason = "cannot be continued by other ranks or after an interruption"
    hint = f"{instead}; {OTHER_ORDER} state_dict() and load_state_dict()"
    return f"the order that {sampler} gives {reason}", hint


def wrong_sampler(
    class_path: str,
    located: Located,
    method: ast.FunctionDef,
    path: Sequence[str],
    model: ast.AST | None = None,
) -> tuple[int, str, str] | None:
    """The line of a sampler that `train_dataloader` surely gives, what to say of it, and the fix.

    None where the method may give another loader.

    Args:
        class_path: Of the data; `located` is the class of it, or of a base, that has the method.
        path: As `sys.path`.
        model: The model's class, for the loss that it has.
    """
    loader = _returned(method)
    if torchs_class(loader, located) != "DataLoader" or not isinstance(loader, ast.Call):
        return None
    given = {it.arg: it.value for it in loader.keywords}
    sampler = _made_by_class(made(given.get("sampler"), method), class_path, located, path)
    if None in given or sampler is None:
        return None
    name = torchs_class(sampler, located)
    if name in INSTEAD:
        return sampler.lineno, *order_refusal(name, _for_loss(INSTEAD[name], model))
    if own := _own_sampler(sampler, located, path):
        name, base = own
        instead = _for_loss(INSTEAD.get(base, PLAIN_ORDER), model)
        return sampler.lineno, *order_refusal(name, instead)
    shuffle = given.get("shuffle")
    if name in _SHUFFLES and isinstance(shuffle, ast.Constant) and shuffle.value is True:
        said = f"torch refuses sampler={name}(...) beside shuffle=True"
        return sampler.lineno, said, "leave the sampler out: each rank has its part of the samples"
    return None


def _returned(method: ast.FunctionDef) -> ast.expr | None:
    """What a method surely returns, by its last line."""
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    if len(returns) != 1 or method.body[-1] is not returns[0]:
        return None
    return made(returns[0].value, method)


def _made_by_class(
    value: ast.expr | None, class_path: str, located: Located, path: Sequence[str]
) -> ast.expr | None:
    """What `self.rare()` surely returns, or `self.rare` surely is; any other value itself.

    Both have to stand in the class that makes the loader: elsewhere its names mean other things.
    """
    is_call = isinstance(value, ast.Call) and not value.args and not value.keywords
    holder = value.func if is_call and isinstance(value, ast.Call) else value
    if not isinstance(holder, ast.Attribute) or ast.unparse(holder.value) != "self":
        return value
    if is_call:
        found = method_of(class_path, holder.attr, path)
        is_here = found and found[0].definition is located.definition
        return _returned(found[1]) if found and is_here else None
    definition = located.definition
    if not isinstance(definition, ast.ClassDef) or "setattr" in ast.unparse(definition):
        return None
    stored = [
        it
        for it in ast.walk(definition)
        if isinstance(it, (ast.Attribute, ast.Name)) and isinstance(it.ctx, ast.Store)
        if holder.attr == (it.attr if isinstance(it, ast.Attribute) else it.id)
    ]
    always = [found[1] for it in _BEFORE if (found := method_of(class_path, it, path))]
    lines = [line for it in always if it in definition.body for line in it.body]
    assigned = [
        it.value
        for it in lines
        if isinstance(it, ast.Assign)
        and [ast.unparse(one) for one in it.targets] == [f"self.{holder.attr}"]
    ]
    return assigned[0] if len(stored) == len(assigned) == 1 else None


def _own_sampler(value: ast.expr, located: Located, path: Sequence[str]) -> tuple[str, str] | None:
    """The name of a sampler of the user's own, and of torch's that it derives from; or None."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, (ast.Name, ast.Attribute)):
        return None
    found = locate(f"{located.module}.{ast.unparse(value.func)}", path)
    if found is None or found.module.partition(".")[0] == "torch":
        return None
    if derives_from(found, "DistributedSampler", path) is not False:
        return None
    base = next((it for it in (*INSTEAD, "Sampler") if derives_from(found, it, path)), "")
    return (found.name, base) if base else None


def _for_loss(instead: str, model: ast.AST | None) -> str:
    """The fix with the weights of the loss that the model's text has."""
    text = ast.unparse(model) if model is not None else ""
    losses = [form for word, form in _WEIGHTS.items() if re.search(rf"\b{word}\b", text)]
    example = losses[0] if len(set(losses)) == 1 else ""
    return (
        re.sub(r"\(.*\)$", f"({example})", instead) if example and "weights" in instead else instead
    )


def made(value: ast.expr | None, method: ast.FunctionDef) -> ast.expr | None:
    """What a local name is surely assigned, once; any other value itself."""
    if not isinstance(value, ast.Name):
        return value
    stored = [
        it
        for it in ast.walk(method)
        if isinstance(it, ast.Name) and it.id == value.id and isinstance(it.ctx, ast.Store)
    ]
    assigned = [
        it.value
        for it in method.body
        if isinstance(it, ast.Assign)
        and [target.id for target in it.targets if isinstance(target, ast.Name)] == [value.id]
        and len(it.targets) == 1
    ]
    return assigned[0] if len(stored) == len(assigned) == 1 else None


def torchs_class(value: ast.expr | None, located: Located) -> str:
    """The name of the class of torch.utils.data that is called; empty for any other value."""
    if not isinstance(value, ast.Call) or located.names is None:
        return ""
    first, _, rest = ast.unparse(value.func).partition(".")
    full = f"{located.names.imports.get(first, '')}.{rest}".strip(".")
    return full.rpartition(".")[2] if full.startswith("torch.utils.data.") else ""
