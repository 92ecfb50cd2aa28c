"""Two groups of parameters of an SGD, whose steps tell the rates, and a schedule by epochs."""

import sys

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = sys.argv[1] == "automatic"
        self.first, self.second = (
            torch.nn.Parameter(torch.zeros(1)),
            torch.nn.Parameter(torch.zeros(1)),
        )

    def training_step(self, batch, batch_idx):
        return (self.first + self.second) * batch[0].mean()  # a gradient of 1 for each

    def on_train_batch_start(self, batch, batch_idx):
        self.before = [self.first.item(), self.second.item()]

    def on_train_batch_end(self, outputs, batch, batch_idx):
        after = self.first.item(), self.second.item()
        steps = [round(old - new, 6) for old, new in zip(self.before, after, strict=True)]
        print("step", self.global_step, *steps)

    def configure_optimizers(self):
        groups = [{"params": [self.first]}, {"params": [self.second], "lr": 0.01}]
        optimizer = torch.optim.SGD(groups, lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]


pl.seed_everything(1)
data = DataLoader(TensorDataset(torch.ones(16, 1)), batch_size=2)
model = Net()
trainer = pl.Trainer(max_epochs=2, logger=False, enable_checkpointing=False)
trainer.fit(model, data)
if trainer.is_global_zero:
    torch.save(model.state_dict(), "final.pt")
