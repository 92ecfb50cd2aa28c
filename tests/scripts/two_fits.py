"""Pretraining, finetuning by a second Trainer, some epochs more of that; manual optimization."""

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pretrained(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 5))

    def training_step(self, batch, batch_idx):
        return (self.body(batch[0]) - batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Adversarial(pl.LightningModule):
    """Two optimizers, stepped by hand."""

    def __init__(self, body):
        super().__init__()
        self.automatic_optimization = False
        self.body = body
        self.critic = nn.Linear(5, 1)

    def training_step(self, batch, batch_idx):
        makes, judges = self.optimizers()
        made = self.body(batch[0] + torch.randn_like(batch[0]))
        judges.zero_grad()
        self.manual_backward(self.critic(made.detach()).mean() - self.critic(batch[0]).mean())
        judges.step()
        makes.zero_grad()
        self.manual_backward(-self.critic(made).mean())
        makes.step()

    def configure_optimizers(self):
        made = torch.optim.Adam(self.body.parameters(), lr=0.01)
        return made, torch.optim.Adam(self.critic.parameters(), lr=0.01)


torch.manual_seed(3)
data = DataLoader(TensorDataset(torch.randn(48, 5)), batch_size=4, shuffle=True)
first = Pretrained()
pl.Trainer(max_epochs=1, logger=False, enable_checkpointing=False).fit(first, data)
print("between", torch.rand(1).item())
second = Adversarial(first.body)
trainer = pl.Trainer(
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    strategy="ddp_find_unused_parameters_true",
)
trainer.fit(second, data)
trainer.fit_loop.max_epochs = 2
trainer.fit(second, data)
if trainer.is_global_zero:
    torch.save({"weights": second.state_dict(), "after": torch.rand(1)}, "final.pt")
