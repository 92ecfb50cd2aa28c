"""A model and data whose evaluation tells which samples it saw."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset[Tensor]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([float(index)])


class Table:
    """As a DataFrame is one: no tensor, and no list."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows


class Streamed(IterableDataset[Tensor]):
    def __iter__(self) -> Any:
        yield from (Numbers(5)[index] for index in range(5))


class NumbersData(pl.LightningDataModule):
    def __init__(self, n: int = 11, shuffle: bool = False, loaders: int = 1, stream: bool = False):
        super().__init__()
        self.n, self.shuffle, self.loaders, self.stream = n, shuffle, loaders, stream

    def train_dataloader(self) -> Any:
        return DataLoader(Numbers(24), batch_size=4)

    def test_dataloader(self) -> Any:
        if self.stream:
            return DataLoader(Streamed(), batch_size=2)
        made = [
            DataLoader(Numbers(self.n + more), batch_size=2, shuffle=self.shuffle)
            for more in range(self.loaders)
        ]
        return made if self.loaders > 1 else made[0]

    val_dataloader = predict_dataloader = test_dataloader


class Weighted(pl.LightningModule):
    """Multiplies by a weight that training moves from 1."""

    def __init__(self, width: int = 1, kind: str = "tensor") -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, width, bias=False)
        self.kind = kind

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        return self.layer(batch).square().mean()

    def test_step(self, batch: Tensor, index: int, dataloader_idx: int = 0) -> None:
        ones = torch.ones(len(batch))
        both = {"on_step": False, "on_epoch": True, "sync_dist": True, "reduce_fx": "sum"}
        self.log("seen", ones.sum(), **both)
        self.log("sum", batch.sum(), **both)
        self.log("weight", self.layer.weight.mean(), sync_dist=True)

    validation_step = test_step

    def predict_step(self, batch: Tensor, index: int, dataloader_idx: int = 0) -> Any:
        if self.kind == "dict":
            return {"x": batch[:, 0], "names": [f"n{int(item)}" for item in batch]}
        if self.kind == "mean":
            return batch.mean()
        if self.kind == "table":
            return Table(batch)
        if self.kind == "ragged":
            return [torch.zeros(int(item)) for item in batch]
        return batch[:, 0]

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class OnlyTrains(pl.LightningModule):
    def training_step(self, batch: Tensor, index: int) -> Tensor:
        return batch.sum()

    def configure_optimizers(self) -> None:
        return None
