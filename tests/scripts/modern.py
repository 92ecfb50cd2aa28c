"""The same by Lightning's other package, with a data module, and without any seed."""

import sys
import time

import lightning as L  # noqa: N812 - as its documentation has it
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset


class Data(L.LightningDataModule):
    def setup(self, stage):
        self.set = TensorDataset(torch.arange(40.0).reshape(20, 2) / 40)

    def train_dataloader(self):
        return DataLoader(self.set, batch_size=5, shuffle=True)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5))

    def training_step(self, batch, batch_idx):
        time.sleep(float(sys.argv[2]))
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    print("arguments", sys.argv[1:], "in", __name__, __file__)
    model = Model()
    trainer = L.Trainer(max_epochs=int(sys.argv[1]), logger=CSVLogger("."), log_every_n_steps=1)
    trainer.fit(model, Data())
    if trainer.is_global_zero:
        torch.save(model.state_dict(), f"final-{sys.argv[2]}.pt")
    sys.exit(0)
