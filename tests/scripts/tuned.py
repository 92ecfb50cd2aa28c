"""A learning rate that a Tuner finds, then the fit."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.tuner import Tuner
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.2))

    def predict_step(self, batch, batch_idx):
        return self.layer(batch)

    def training_step(self, batch, batch_idx):
        return (self.layer(batch[0]) - 1).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


pl.seed_everything(5)
data = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=4, shuffle=True)
model = Net()
trainer = pl.Trainer(max_epochs=1, logger=False, enable_checkpointing=False)
Tuner(trainer).lr_find(model, data, num_training=12)
print("found", model.lr)
trainer.fit(model, data)
outputs = trainer.predict(model, DataLoader(torch.randn(10, 4), batch_size=1))
print("predicted", len(outputs))
if trainer.is_global_zero:
    torch.save(model.state_dict(), "final.pt")
