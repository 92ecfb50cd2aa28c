"""Sees whether training_step ever gives a loss, and judges at the end of an epoch."""

from __future__ import annotations

from hpc_train.training.private.lightning import pl
from hpc_train.training.private.lightning_trainer import has_optimizers, version_of
from hpc_train.training.resume.untrained import UntrainedError


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
    return sum(version_of(parameter) for parameter in module.parameters())
