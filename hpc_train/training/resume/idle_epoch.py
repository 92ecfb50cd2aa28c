"""A first epoch in which no weight changes: no optimizer, or a learning rate of 0 all through it.

Both are legal, so each is a note: a model may only collect, and a warmup may begin at 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.users_method import lines_of, own_method, parsed
from hpc_train.training.private.lightning import pl
from hpc_train.training.private.lightning_trainer import has_optimizers, saves_shards
from hpc_train.training.resume.unsavable import class_name

_MAKES = "configure_optimizers"
_FEW = 2
_PLAIN = (torch.Tensor, torch.nn.Parameter)  # a shard's sum would need the other ranks


class IdleEpoch:
    """What is trained, and at which rate, as the first epoch begins.

    Nothing is looked at but as it begins and as it ends, and the weights only where the rate is 0.

    Args:
        module: Of a fit that has taken no step.
        rate: Where the config has the learning rate, and what it is; or empty.
    """

    def __init__(self, module: pl.LightningModule, rate: str) -> None:
        self._rate = rate
        self._trained = [it for it in module.parameters() if it.requires_grad]
        self._has_optimizer = has_optimizers(module.trainer)
        self._sums: list[float] = []
        is_whole = not saves_shards(module.trainer.strategy)
        if self._has_optimizer and is_whole and all(type(it) in _PLAIN for it in self._trained):
            rates = [*_rates(module.trainer)]
            self._sums = _sums(self._trained) if rates and not any(rates) else []

    def said(self, module: pl.LightningModule, *, changed: bool) -> str:
        """What to tell at its end; empty where something may have been trained.

        Args:
            changed: Whether anything has written into a weight.
        """
        if not self._trained:
            return ""
        if not self._has_optimizer:
            return "" if changed else _without_optimizer(module)
        # Its first step alone may be at 0, and may be all that a short epoch has.
        is_one_step = module.trainer.global_step < _FEW
        if is_one_step or not self._sums or _sums(self._trained) != self._sums:
            return ""
        return _without_rate(module, self._rate)


def _without_optimizer(module: pl.LightningModule) -> str:
    place = _place(module, _gives_none)
    return (
        f"{_MAKES} of {class_name(type(module))} gives None{place}, so that no weight is trained;"
        " where it is to learn: return torch.optim.Adam(self.parameters(), lr=1e-3)"
    )


def _without_rate(module: pl.LightningModule, rate: str) -> str:
    trainer = module.trainer
    of = class_name(type(module))
    said = "the learning rate was 0 through the whole first epoch, and no weight has changed"
    groups = [group for it in trainer.optimizers for group in it.param_groups]
    configs: list[Any] = trainer.lr_scheduler_configs
    if not any(float(it.get("initial_lr", it["lr"])) for it in groups):
        given = f" ({rate})" if rate.endswith((" is 0", " is 0.0")) else ""
        place = _place(module, _makes_rate)
        return f"{said}: the optimizer of {of}{place} has lr 0{given}; write another"
    kind = type(configs[0].scheduler).__name__ if configs else ""
    made = f"{kind} of {of}{_place(module, kind)}" if kind else f"the rate of {of}"
    if any(it.interval == "epoch" for it in configs):
        fix = 'of a warmup write (epoch + 1) / N, or step it once a batch: "interval": "step"'
    else:
        fix = "what it gives for a first step has to be above 0, as (step + 1) / N of a warmup"
    return f"{said}: {made} begins at 0; {fix}"


def _rates(trainer: pl.Trainer) -> Iterator[float]:
    for optimizer in trainer.optimizers:
        yield from (float(group["lr"]) for group in optimizer.param_groups if "lr" in group)


def _sums(parameters: list[torch.nn.Parameter]) -> list[float]:
    """Of each weight one number, which any training of it would change."""
    try:
        with torch.no_grad():
            return [float(it.sum(dtype=torch.float64)) for it in parameters]
    except (TypeError, RuntimeError):  # of a device without such numbers, or without memory
        return []


def _gives_none(node: ast.AST) -> bool:
    if not isinstance(node, ast.Return):
        return False
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


def _makes_rate(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(it.arg == "lr" for it in node.keywords)


def _place(module: Any, is_it: Any) -> str:
    """` (nets.py:31: return None)` of the one part of the method that is it, or of its def.

    Args:
        is_it: Whether a node is, or the name of what is called.
    """
    method = own_method(module, _MAKES)
    lines, first = lines_of(method)
    definition = parsed(lines)
    if definition is None:
        return ""
    if isinstance(is_it, str):
        called = [it for it in ast.walk(definition) if isinstance(it, ast.Call)]
        found: list[Any] = [it for it in called if ast.unparse(it.func).endswith(is_it)]
    else:
        found = [it for it in ast.walk(definition) if is_it(it)]
    file = shown_file(method.__code__.co_filename)
    if len(found) != 1:
        return f" ({file}:{first + definition.lineno - 1})"
    text = f": {ast.unparse(found[0])}" if isinstance(found[0], ast.Return) else ""
    return f" ({file}:{first + found[0].lineno - 1}{text})"
