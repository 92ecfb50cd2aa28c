"""A fit of Lightning's that tells of each step of its loops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, TensorDataset
from torchmetrics import MeanMetric

from hpc_train.training.private import lightning_trainer as inner
from hpc_train.training.private.lightning import (
    pl,
)
from hpc_train.training.private.lightning_logged import (
    capture_logged,
    restore_logged,
)
from hpc_train.training.private.lightning_loops import replace_loops
from hpc_train.training.taken_over import TakenOver


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.mean = MeanMetric()
        self.seen: list[Any] = []

    def on_train_epoch_start(self) -> None:
        self.seen.append(f"epoch {self.current_epoch}")

    def training_step(self, batch: Any, index: int) -> Any:
        (x,) = batch
        self.seen.append(x.flatten().tolist())
        loss = (self.layer(x) - x).square().mean()
        self.mean(loss.detach())
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("top", loss, reduce_fx="max", on_step=False, on_epoch=True)
        self.log("mean", self.mean, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val", batch[0].mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.1)

    def train_dataloader(self) -> Any:
        return [0.0]  # never asked for a batch: it is changed

    val_dataloader = train_dataloader


class StopError(Exception):
    pass


class Hooks:
    """Notes what the loops say, keeps the state of step `stop_at` and ends there."""

    def __init__(self, stop_at: int = 0, saved: Any = None, **trainer: Any) -> None:
        self.stop_at, self.saved, self.waits = stop_at, saved, saved is not None
        self.said: list[Any] = []
        self.places: list[Any] = []
        quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
        options = {"accelerator": "cpu", "devices": 1, "max_epochs": 2, **trainer}
        self.trainer = pl.Trainer(**{**dict.fromkeys(quiet, False), **options})

    def fit(self, checkpoint: Path | None = None) -> Net:
        torch.manual_seed(0)
        self.net = Net()
        replace_loops(self.trainer, self)
        inner.change_loaders(
            self.trainer,
            train=self.train,
            evaluation=self.evaluation,
            prediction=self.evaluation,
        )
        inner.leave_signals_alone(self.trainer)
        self.trainer.fit(self.net, ckpt_path=checkpoint)
        return self.net

    def train(self, loaders: list[Any]) -> list[Any]:
        assert len(loaders) == 1
        first = 2 * self.saved["batches"] if self.waits else 0
        self.batches = Batches(12, first)
        return [DataLoader(TensorDataset(torch.arange(12.0)[:, None]), batch_sampler=self.batches)]

    def evaluation(self, loaders: list[Any]) -> list[Any]:
        return [DataLoader(TensorDataset(torch.ones(3, 1))) for _ in loaders]

    def was_over(self) -> bool | None:
        return False if self.waits else None

    def reads_again(self) -> bool:
        return False

    def begins(self) -> bool:
        if self.waits:
            self.waits = False
            logged = self.saved["logged"]
            restore_logged(self.trainer, logged, TakenOver((logged,)))
        self.said.append("begins")
        return False

    def epoch_begins(self, epoch: int) -> None:
        if "begins" in self.said:
            self.batches.first = 0
        self.said.append(("epoch", epoch))

    def validation_begins(self) -> None:
        self.said.append(("validation of", inner.validation_batches(self.trainer)))
        assert self.trainer.training

    def ends(self) -> None:
        pass

    def ends_again(self) -> bool:
        return False

    def boundary(self) -> None:
        trainer = self.trainer
        step, batches = trainer.global_step, inner.train_batches(trainer)
        self.said.append(step)
        accumulating, last = inner.is_accumulating(trainer), inner.is_last_batch(trainer)
        self.places.append((step, inner.current_epoch(trainer), batches, accumulating, last))
        if step == self.stop_at:
            checkpoint = inner.dump_checkpoint(trainer)
            logged = capture_logged(trainer)
            self.saved = {"batches": batches, "logged": logged, "checkpoint": checkpoint}
            raise StopError


class Batches(BatchSampler):
    """Pairs from `first` on; its length is that of the whole epoch."""

    def __init__(self, n: int, first: int) -> None:
        self.n, self.first = n, first

    def __len__(self) -> int:
        return self.n // 2

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[at, at + 1] for at in range(self.first, self.n, 2)])
