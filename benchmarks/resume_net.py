"""What the benchmark of the steps trains, and the clock it reads. Imports torch and Lightning."""

from __future__ import annotations

import time
from typing import Any

import pytorch_lightning as pl
import torch

WIDTH = 512


class Net(pl.LightningModule):
    """Four linear layers: small steps, so that costs beside them show."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)))

    def training_step(self, batch: Any) -> Any:
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters())


class BatchStarts(pl.Callback):
    """When each batch began, by `time.perf_counter`."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_start(self, *_: Any) -> None:
        self.times.append(time.perf_counter())
