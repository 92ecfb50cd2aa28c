"""The smallest training whose steps can be told apart, waited for and broken."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset

from hpc_train.plan import env_names
from tests.ledger import LedgerCallback


class Numbers(Dataset):
    """Sample i is its own number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((4,), float(index % 7)), index


class TinyData(pl.LightningDataModule):
    def __init__(self, batch_size: int, size: int = 6000) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.size = size

    def train_dataloader(self) -> DataLoader:
        return DataLoader(Numbers(self.size), batch_size=self.batch_size, shuffle=True)


class LongSetup(TinyData):
    """The same, after minutes in which a rank does not look whether it is to leave."""

    def setup(self, stage: str) -> None:
        time.sleep(300)


class SlowData(TinyData):
    """The same, slow to be read on one node: a tenth of a second a sample."""

    def __init__(self, batch_size: int, slow_node: str, size: int = 6000) -> None:
        super().__init__(batch_size, size)
        self.is_slow = os.environ.get("SLURMD_NODENAME") == slow_node

    def train_dataloader(self) -> DataLoader:
        return DataLoader(Slow(self.size, 0.1 * self.is_slow), batch_size=self.batch_size)


class Slow(Numbers):
    def __init__(self, size: int, sample_s: float) -> None:
        super().__init__(size)
        self.sample_s = sample_s

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.sample_s)
        return super().__getitem__(index)


class Tiny(pl.LightningModule):
    """A linear model that can be slow, wrong, large or undefined.

    Args:
        step_s: A step takes at least this long.
        raise_at: The step in which it raises a ValueError.
        crash_at: The step in which it reads at the address 0 (SIGSEGV).
        nan_at: The step from which on the loss is not a number, and is refused.
        weights_mib: Ballast in the checkpoint.
        ledger: Whether each step is recorded in the run's folder `ledger`.
        hidden: Width of an MLP with dropout, in place of the linear model.
    """

    def __init__(
        self,
        step_s: float = 0.05,
        raise_at: int | None = None,
        crash_at: int | None = None,
        nan_at: int | None = None,
        weights_mib: int = 0,
        ledger: bool = False,
        hidden: int = 0,
    ) -> None:
        super().__init__()
        self.layer: torch.nn.Module = torch.nn.Linear(4, 1)
        if hidden:
            into, out = torch.nn.Linear(4, hidden), torch.nn.Linear(hidden, 1)
            self.layer = torch.nn.Sequential(into, torch.nn.ReLU(), torch.nn.Dropout(0.2), out)
        if weights_mib:
            self.register_buffer("ballast", torch.zeros(weights_mib << 18))
        self.crash_at = crash_at
        self.step_s, self.raise_at, self.nan_at, self.ledger = step_s, raise_at, nan_at, ledger

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _index: int) -> torch.Tensor:
        time.sleep(self.step_s)
        loss = self.layer(batch[0]).square().mean()
        if self.global_step == self.raise_at:
            raise ValueError(f"label {int(batch[1][0])} is out of range")
        if self.global_step == self.crash_at and self.global_rank == 1:
            ctypes.string_at(0)
        if self.nan_at is not None and self.global_step >= self.nan_at:
            loss = loss * float("nan")
            if not torch.isfinite(loss):
                raise FloatingPointError(f"the loss is {float(loss)} at step {self.global_step}")
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.layer.parameters(), lr=1e-3)

    def configure_callbacks(self) -> list[pl.Callback]:
        if not self.ledger:
            return []
        folder = Path(os.environ[env_names.RUN_DIR]) / "ledger"
        attempt = int(os.environ[env_names.ATTEMPT])
        rank = self.global_rank
        return [
            LedgerCallback(folder, rank=rank, attempt=attempt, ids=lambda batch: batch[1].tolist())
        ]


class EndsItself(Tiny):
    """The same, and a rank ends its process in its fifth step.

    Args:
        by: "os" (`os._exit`), "sys" (`sys.exit`), "c" (`_exit` of the C library).
        status: The exit code.
    """

    def __init__(self, by: str = "os", rank: int = 0, status: int = 0) -> None:
        super().__init__(step_s=0.01)
        self.by, self.rank, self.status = by, rank, status

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        if self.global_step == 5 and self.global_rank == self.rank:
            leave = {"os": os._exit, "sys": sys.exit, "c": ctypes.CDLL(None)._exit}
            leave[self.by](self.status)
        return super().training_step(batch, index)


class Logged(Tiny):
    """The same, and its loss is a metric."""

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        loss = super().training_step(batch, index)
        self.log("loss", loss)
        return loss
