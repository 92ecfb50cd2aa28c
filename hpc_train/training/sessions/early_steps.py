"""An optimizer of a loop with a Session that steps before a global batch is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from hpc_train.training.sessions.session_arguments import early_step


class EarlySteps:
    """Counts the micro batches at which each optimizer steps; more than make its steps are refused.

    Several steps behind one micro batch count once, as of a loop that repeats its last one. One
    that is skipped, as a GradScaler does, is none too many.

    Args:
        drawn: How many micro batches this attempt has had.
        accumulate: Micro batches that make a step.
    """

    def __init__(self, drawn: Callable[[], int], *, accumulate: int) -> None:
        self._drawn = drawn
        self._accumulate = accumulate
        self._names: dict[int, str] = {}
        self._trained: set[int] = set()  # parameters, by id
        # Steps, and behind which micro batch the last was. What the loop drops is not held here.
        self._seen = WeakKeyDictionary[Optimizer, tuple[int, int]]()
        self._others = WeakSet[Optimizer]()
        self._hook: Any = None

    def begin(self, objects: Mapping[str, Any]) -> None:
        """Look at the optimizers that `restore` is given, and at those of its modules' parameters.

        With one micro batch a step no step comes too early, and nothing is looked at.
        """
        if self._accumulate < 2:
            return
        modules = [it for it in objects.values() if isinstance(it, Module)]
        self._trained = {id(it) for module in modules for it in module.parameters()}
        self._names = {id(it): name for name, it in objects.items() if isinstance(it, Optimizer)}
        if self._hook is None:
            self._hook = register_optimizer_step_pre_hook(self._before_step)

    def end(self) -> None:
        """Ask torch for nothing more."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Called by torch.

        Raises:
            ConfigError: the step would have a part of the global batch.
        """
        drawn = self._drawn()
        steps, at = self._seen.get(optimizer, (0, 0))
        if drawn == at or (not steps and not self._is_meant(optimizer)):
            return
        self._seen[optimizer] = steps + 1, drawn
        if drawn < (steps + 1) * self._accumulate:
            name = self._names.get(id(optimizer), type(optimizer).__name__)
            raise early_step(name, steps + 1, drawn=drawn, accumulate=self._accumulate)

    def _is_meant(self, optimizer: Optimizer) -> bool:
        """Whether it trains what the session keeps: one of an attack on the samples does not."""
        if optimizer in self._others:
            return False
        groups = optimizer.param_groups
        is_it = id(optimizer) in self._names or any(
            id(it) in self._trained for group in groups for it in group["params"]
        )
        if not is_it:
            self._others.add(optimizer)
        return is_it
