"""Meets each Trainer that a script makes, of whichever of Lightning's packages, as it is imported.

The classes' methods are replaced when their module has been executed, so that a script needs no
changed line, and may import the Trainer in any way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from hpc_train.training.private.after_import import after_import
from hpc_train.training.private.versions import LIGHTNING_PACKAGES, use_package

_MODULES = {f"{package}.trainer.trainer": package for package in LIGHTNING_PACKAGES}
RUNS = ("fit", "validate", "test", "predict")


class TrainerHooks(Protocol):
    """Asked by each Trainer in place of its own methods."""

    def arguments(self, trainer: Any, given: dict[str, Any]) -> dict[str, Any]:
        """What `Trainer.__init__` is given in place of what the script gives."""

    def run(
        self, trainer: Any, name: str, method: Callable[..., Any], given: inspect.BoundArguments
    ) -> Any:
        """One of `RUNS`, in place of `method`, which takes what is given by name."""


def follow_trainers(hooks: TrainerHooks) -> None:
    """Let `hooks` be asked by every Trainer of this process, for good."""
    after_import(dict.fromkeys(_MODULES, functools.partial(_meet, hooks=hooks)))


def _meet(module: ModuleType, hooks: TrainerHooks) -> None:
    kind: Any = module.Trainer
    package, make = _MODULES[module.__name__], kind.__init__

    @functools.wraps(make)
    def init(self: Any, *positional: Any, **named: Any) -> None:
        use_package(package)
        make(self, *positional, **hooks.arguments(self, named))
        # Its handlers requeue the job by themselves, and communicate inside of a handler.
        self._signal_connector.register_signal_handlers = lambda: None

    kind.__init__ = init
    for name in RUNS:
        setattr(kind, name, _through(hooks, name, getattr(kind, name)))


def _through(hooks: TrainerHooks, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *positional: Any, **named: Any) -> Any:
        bound = functools.partial(method, self)
        return hooks.run(self, name, bound, inspect.signature(bound).bind(*positional, **named))

    return run
