"""A fit whose training_step gives no loss: Lightning warns once, and trains nothing to the end."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from hpc_train.errors import RunFailedError
from hpc_train.training.resume.unsavable import class_name

if TYPE_CHECKING:
    from hpc_train.training.private.lightning import pl


class UntrainedError(RunFailedError):
    """An epoch is over, and nothing was learned in it.

    Attributes:
        where: `file:line` of the method; empty where nobody can tell.
    """

    def __init__(self, module: pl.LightningModule) -> None:
        super().__init__(
            f"training_step of {class_name(type(module))} returned None at every step: "
            "no optimizer step has trained anything",
            "write `return loss` at its end, or self.automatic_optimization = False in __init__"
            " where it optimizes by hand",
        )
        step: Any = inspect.unwrap(type(module).training_step)
        code = getattr(step, "__code__", None)
        self.where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


class LossWatch:
    """Sees a loss, or none; judges at the end of an epoch of which it has seen all.

    One None now and then is how Lightning lets a batch be passed over.
    """

    def __init__(self) -> None:
        self._judges = False
        self._batches = 0
        self._versions = 0

    def begin(self, module: pl.LightningModule, *, resumed: bool) -> None:
        """The first step of an attempt comes; a resumed one may be in the middle of an epoch."""
        from hpc_train.training.private.lightning_trainer import has_optimizers

        self._judges = module.automatic_optimization and has_optimizers(module.trainer)
        self._batches = -1 if resumed else 0
        self._versions = _versions(module)

    def loss_came(self) -> None:
        """There is something to learn from."""
        self._judges = False

    def batch_ended(self) -> None:
        """Another batch has been through training_step."""
        if self._batches >= 0:
            self._batches += 1

    def epoch_ended(self, module: pl.LightningModule) -> None:
        """Raise an UntrainedError where no batch of a whole epoch gave a loss."""
        if self._judges and self._batches > 0 and _versions(module) == self._versions:
            raise UntrainedError(module)
        self._batches = max(0, self._batches)


def _versions(module: pl.LightningModule) -> int:
    """Grows with whatever changes a parameter in place: some optimize by hand and do not say so."""
    from hpc_train.training.private.lightning_trainer import version_of

    return sum(version_of(parameter) for parameter in module.parameters())
