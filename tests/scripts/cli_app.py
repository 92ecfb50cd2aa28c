"""LightningCLI as its documentation has it: `cli_app.py fit --trainer.max_epochs 3`."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.cli import LightningCLI
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self, width: int = 8, lr: float = 0.05):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.Dropout(0.3), nn.Linear(width, 2))

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def test_step(self, batch, batch_idx):
        self.validation_step(batch, batch_idx)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)

    def on_fit_end(self):
        if self.trainer.is_global_zero:
            torch.save(self.state_dict(), "final.pt")


class Data(pl.LightningDataModule):
    def __init__(self, batch_size: int = 4):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        x = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
        self.set = TensorDataset(x, (x.sum(1) > 0).long())

    def train_dataloader(self):
        return DataLoader(self.set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.set, batch_size=self.batch_size)

    test_dataloader = val_dataloader


if __name__ == "__main__":
    LightningCLI(Net, Data)
