"""Sees whether there ever is a loss, or a step by hand, and judges at the end of an epoch.

Where a logged number is NaN then, it looks whether a weight is, too: such a training cannot come
back, and its next checkpoint, which ends it, may be minutes away.
"""

from __future__ import annotations

from collections.abc import Callable

from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.loggers import logs_nan
from hpc_train.training.private.lightning import pl
from hpc_train.training.private.lightning_trainer import has_optimizers, saves_shards, version_of
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.resume.idle_epoch import IdleEpoch
from hpc_train.training.resume.saving import has_nan
from hpc_train.training.resume.untrained import NO_STEP, no_loss, no_step


class LossWatch:
    """Sees a loss, or none; judges at the end of an epoch of which it has seen all.

    One None now and then is how Lightning lets a batch be passed over.

    Args:
        ask_to_save: Has all ranks save soon, which refuses weights that are NaN.
        rank: Where its notes go.
    """

    def __init__(self, ask_to_save: Callable[[], None], rank: RankConfig) -> None:
        self._ask_to_save, self._rank = ask_to_save, rank
        self._first: IdleEpoch | None = None  # of a fit that begins
        self._has_asked = False
        self._judges = self._is_manual = False
        self._batches = 0
        self._versions = 0

    def begin(self, module: pl.LightningModule, *, resumed: bool) -> None:
        """The first step of an attempt comes; a resumed one may be in the middle of an epoch."""
        has = has_optimizers(module.trainer)
        self._judges = module.automatic_optimization and has
        self._is_manual = not module.automatic_optimization and has
        self._batches = -1 if resumed else 0
        self._versions = _versions(module)
        is_first = not resumed and module.trainer.global_step == 0 and self._rank.rank == 0
        self._first = IdleEpoch(module, self._rank.rate) if is_first else None

    def loss_came(self) -> None:
        """There is something to learn from."""
        self._judges = False

    def batch_ended(self) -> None:
        """Another batch has been through training_step."""
        if self._batches >= 0:
            self._batches += 1

    def epoch_ended(self, module: pl.LightningModule) -> None:
        """Raise an UntrainedError where no batch of a whole epoch gave a loss, or a step."""
        if self._judges and self._batches > 0 and _versions(module) == self._versions:
            raise no_loss(module, module.trainer.train_dataloader)
        batches = self.without_step(module)
        if batches and (error := no_step(module, batches)):
            raise error
        if self._first is not None and self._batches > 0:
            self._tell(self._first.said(module, changed=_versions(module) != self._versions))
            self._first = None
        self._batches = max(0, self._batches)
        self.look_at_weights(module.trainer)

    def _tell(self, said: str) -> None:
        attempt = self._rank.run.attempt(self._rank.attempt)
        if said and self._rank.rank == 0 and said not in read_notes(attempt):
            leave_note(attempt, said)

    def look_at_weights(self, trainer: pl.Trainer) -> None:
        """Ask for a save where a weight is NaN, once; they are read where a logged number is NaN.

        Shards are left alone: no rank has the whole of a weight.
        """
        if self._has_asked or not trainer.is_global_zero or saves_shards(trainer.strategy):
            return
        if not logs_nan(trainer):
            return
        self._has_asked = any(has_nan(it) for it in trainer.lightning_module.parameters())
        if self._has_asked:
            self._ask_to_save()

    def fit_ended(self, trainer: pl.Trainer) -> None:
        """Leave a note where no step was taken, and that may be meant."""
        if batches := self.without_step(trainer.lightning_module):
            self._tell(NO_STEP.format(batches=batches))

    def without_step(self, module: pl.LightningModule) -> int:
        """Batches of a model that optimizes by hand, where no step has changed it; else 0."""
        stepped = module.trainer.global_step > 0 or _versions(module) != self._versions
        return 0 if stepped or not self._is_manual else max(0, self._batches)


def _versions(module: pl.LightningModule) -> int:
    """Grows with whatever changes a parameter in place: some optimize by hand and do not say so."""
    return sum(version_of(parameter) for parameter in module.parameters())
