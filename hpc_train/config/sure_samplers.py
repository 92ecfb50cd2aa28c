"""Samplers of a train loader whose order cannot be continued: what to write, and where they are."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hpc_train.config.class_kind import Located
from hpc_train.config.method_signatures import own_nodes

PLAIN_ORDER = "use shuffle=True or shuffle=False"
# What keeps to the samples, or the weights, that a sampler of torch's is there for.
INSTEAD: Mapping[str, str] = {
    "SubsetRandomSampler": (
        "give the DataLoader torch.utils.data.Subset(DATASET, INDICES) and shuffle=True"
    ),
    "WeightedRandomSampler": (
        "use shuffle=True and weights in the loss (CrossEntropyLoss(weight=...))"
    ),
}
# Of others of torch's, which stand for what a shuffle gives.
_SHUFFLES = ("RandomSampler", "SequentialSampler", "DistributedSampler")
OTHER_ORDER = "for another order give the DataLoader an IterableDataset with"


def order_refusal(sampler: str, instead: str) -> tuple[str, str]:
    """What is said of a sampler of that name, and what to write."""
    reason = "cannot be continued by other ranks or after an interruption"
    hint = f"{instead}; {OTHER_ORDER} state_dict() and load_state_dict()"
    return f"the order that {sampler} gives {reason}", hint


def wrong_sampler(located: Located, method: ast.FunctionDef) -> tuple[int, str, str] | None:
    """The line of a sampler that `train_dataloader` surely gives, what to say of it, and the fix.

    None where the method may give another loader.
    """
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    if len(returns) != 1 or method.body[-1] is not returns[0]:
        return None
    loader = made(returns[0].value, method)
    if torchs_class(loader, located) != "DataLoader" or not isinstance(loader, ast.Call):
        return None
    given = {it.arg: it.value for it in loader.keywords}
    sampler = made(given.get("sampler"), method)
    name = torchs_class(sampler, located)
    if None in given or sampler is None or not name:
        return None
    if name in INSTEAD:
        return sampler.lineno, *order_refusal(name, INSTEAD[name])
    shuffle = given.get("shuffle")
    if name in _SHUFFLES and isinstance(shuffle, ast.Constant) and shuffle.value is True:
        said = f"torch refuses sampler={name}(...) beside shuffle=True"
        return sampler.lineno, said, "leave the sampler out: each rank has its part of the samples"
    return None


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
