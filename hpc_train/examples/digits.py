"""Handwritten digits: a small CNN on 1,797 real images.

It needs no download and no GPU, and learns in seconds; it is what the first run of a newcomer and
most tests train.

The images beside this file are the test set of "Optical Recognition of Handwritten Digits"
(E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, https://doi.org/10.24432/C50P49,
CC BY 4.0), in the form that scikit-learn gives them. scikit-learn itself is not needed: it brings
SciPy, which torchmetrics imports wherever it is installed, a fifth of the start of a rank.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from torchmetrics.classification import MulticlassAccuracy
from typing_extensions import override

_CLASSES = 10
_VALIDATION_SAMPLES = 360
_IMAGES = Path(__file__).with_name("digits.csv.gz")
_SPLIT_SEED = 20  # of the split alone: all runs validate on the same images


class DigitsClassifier(pl.LightningModule):
    """Two convolutions and a linear layer on images of 8 x 8.

    Args:
        lr: Peak learning rate of AdamW.
        width: Channels of the first convolution; the second has twice as many.
    """

    def __init__(self, lr: float = 3e-3, width: int = 16) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * width * 16, _CLASSES),
        )
        self.val_acc = MulticlassAccuracy(_CLASSES, average="micro")

    @override
    def forward(self, images: Tensor) -> Tensor:
        """Map images (batch, 1, 8, 8) to logits (batch, 10)."""
        return self.net(images)  # type: ignore[no-any-return]

    @override
    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Cross entropy of one micro batch."""
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    @override
    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Add one batch to the accuracy, which torchmetrics reduces over the ranks."""
        images, labels = batch
        logits = self(images)
        self.val_acc.update(logits, labels)
        self.log("val_loss", nn.functional.cross_entropy(logits, labels), sync_dist=True)
        self.log("val_acc", self.val_acc, prog_bar=True)

    @override
    def configure_optimizers(self) -> OptimizerLRScheduler:
        """AdamW, with the rate falling to zero over the run as half a cosine."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


class _Shifted(Dataset[tuple[Tensor, Tensor]]):
    """Images moved by up to one pixel in each direction, drawn from torch's global generator."""

    def __init__(self, base: Dataset[Any]) -> None:
        self.base = base

    def __len__(self) -> int:
        return len(self.base)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image, label = self.base[index]
        down, right = torch.randint(0, 3, (2,)).tolist()
        padded = nn.functional.pad(image, (1, 1, 1, 1))
        return padded[:, down : down + 8, right : right + 8], label


class DigitsData(pl.LightningDataModule):
    """1,437 images to train on and 360 to validate.

    Args:
        augment: Move each training image by up to one pixel at random.
        num_workers: Data workers a rank; 0 loads in the training process.
        batch_size: Samples a rank takes at once; hpc-train gives the plan's micro batch.
    """

    def __init__(self, augment: bool = False, num_workers: int = 0, batch_size: int = 16) -> None:
        super().__init__()
        self.augment = augment
        self.num_workers = num_workers
        self.batch_size = batch_size

    @override
    def setup(self, stage: str) -> None:
        """Read and split the images."""
        rows = np.loadtxt(_IMAGES, delimiter=",")  # 64 pixels from 0 to 16, and the digit
        images = torch.tensor(rows[:, :-1], dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
        whole = TensorDataset(images, torch.tensor(rows[:, -1], dtype=torch.int64))
        sizes = [len(whole) - _VALIDATION_SAMPLES, _VALIDATION_SAMPLES]
        generator = torch.Generator().manual_seed(_SPLIT_SEED)
        train, self.validation = random_split(whole, sizes, generator=generator)
        self.train: Dataset[Any] = _Shifted(train) if self.augment else train

    @override
    def train_dataloader(self) -> DataLoader[Any]:
        """Shuffled; batches of images (batch, 1, 8, 8) in [0, 1] and labels (batch,)."""
        return DataLoader(
            self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers
        )

    @override
    def val_dataloader(self) -> DataLoader[Any]:
        """In order."""
        return DataLoader(self.validation, batch_size=90, num_workers=self.num_workers)
