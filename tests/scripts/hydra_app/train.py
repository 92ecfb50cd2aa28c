"""A Hydra app as its template has it: a decorated main, outputs in a folder named by the clock."""

from pathlib import Path

import hydra
import pytorch_lightning as pl
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(pl.LightningModule):
    def __init__(self, width: int, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Linear(5, width), nn.Tanh(), nn.Dropout(0.2), nn.Linear(width, 5)
        )

    def training_step(self, batch, batch_idx):
        loss = (self.net(batch[0]) - batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


@hydra.main(version_base=None, config_path="conf", config_name="train")
def main(cfg: DictConfig) -> None:
    pl.seed_everything(cfg.seed)
    data = DataLoader(TensorDataset(torch.randn(64, 5)), batch_size=4, shuffle=True)
    model = hydra.utils.instantiate(cfg.model)
    trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(model, data)
    if trainer.is_global_zero:
        out = Path(HydraConfig.get().runtime.output_dir)
        torch.save(model.state_dict(), out / "final.pt")


if __name__ == "__main__":
    main()
