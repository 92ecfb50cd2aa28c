"""A training script as most people have one: argparse, a Trainer, ModelCheckpoint, fit, test."""

import argparse
import json
import random
import time
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Noisy(Dataset):
    """Random augmentation by python's own generator."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(7)
        self.x = torch.randn(size, 6, generator=generator)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + random.random() / 10, self.y[index]


class Net(pl.LightningModule):
    def __init__(self, lr, slow):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)
        )

    def training_step(self, batch, batch_idx):
        time.sleep(self.hparams.slow)
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def test_step(self, batch, batch_idx):
        right = (self.layers(batch[0]).argmax(1) == batch[1]).float().mean()
        self.log("test_acc", right, sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--ckpt-path")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--patience", type=int, default=100)
    args = parser.parse_args()
    if args.seed is not None:
        pl.seed_everything(args.seed)
    train, val = random_split(Noisy(160), [120, 40])
    keeper = ModelCheckpoint(monitor="val_loss", save_top_k=2, save_last=True)
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        accumulate_grad_batches=args.accumulate,
        callbacks=[keeper, EarlyStopping("val_loss", patience=args.patience)],
        devices=1,
        log_every_n_steps=1,
        default_root_dir=args.out,
    )
    model = Net(args.lr, args.slow)
    trainer.fit(
        model,
        DataLoader(train, batch_size=args.batch_size, shuffle=True),
        DataLoader(val, batch_size=args.batch_size),
        ckpt_path=args.ckpt_path,
    )
    (tested,) = trainer.test(ckpt_path="best", dataloaders=DataLoader(val, batch_size=8))
    if trainer.is_global_zero:
        torch.save(model.state_dict(), args.out / "final.pt")
        best = torch.load(keeper.best_model_path, weights_only=False)
        result = {**tested, "step": trainer.global_step, "best": best["global_step"]}
        (args.out / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
