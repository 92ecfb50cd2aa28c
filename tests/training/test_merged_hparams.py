"""Arguments that a fit has found in model and data with two values are told with both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger
from torch.utils.data import DataLoader

from hpc_train.training.failures.failure_words import fix_of


class Net(pl.LightningModule):
    def __init__(self, horizon: int = 12, names: Any = None) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: Any) -> Any:
        return self.layer(batch).mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


class Data(pl.LightningDataModule):
    def __init__(self, horizon: int = 6, names: Any = None) -> None:
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self) -> Any:
        return DataLoader(torch.zeros(4, 1))  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_both_values_are_told(tmp_path: Path) -> None:
    trainer = pl.Trainer(
        logger=CSVLogger(tmp_path),
        accelerator="cpu",
        max_epochs=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with pytest.raises(RuntimeError, match="merging hparams") as caught:
        trainer.fit(Net(), datamodule=Data())
    assert fix_of(caught.value) == (
        "horizon is 12 in the model and 6 in the data: give both the same value, or write"
        " self.save_hyperparameters(logger=False) in one of them"
    )
    assert fix_of(RuntimeError("another")) == ""
