"""Averages of the weights in place of the last ones, and a CSV file of the metrics."""

import sys

import pytorch_lightning as pl
import torch
from pytorch_lightning import callbacks
from pytorch_lightning.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self, norm):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), norm(8), nn.Dropout(0.3), nn.Linear(8, 2))

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.2, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)]


def average(kind):
    if kind == "ema":
        return callbacks.EMAWeightAveraging(decay=0.9)
    return callbacks.StochasticWeightAveraging(swa_lrs=0.05, swa_epoch_start=2, annealing_epochs=2)


if __name__ == "__main__":
    pl.seed_everything(2)
    x = torch.randn(24, 4)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    model = Net(nn.BatchNorm1d if sys.argv[1] == "swa-norm" else nn.Identity)
    trainer = pl.Trainer(
        max_epochs=4,
        callbacks=[average(sys.argv[1])],
        logger=CSVLogger("."),
        log_every_n_steps=1,
        enable_checkpointing=False,
    )
    trainer.logger.log_hyperparams({"kind": sys.argv[1]})
    trainer.fit(model, DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=4))
    if trainer.is_global_zero:
        torch.save(model.state_dict(), "final.pt")
