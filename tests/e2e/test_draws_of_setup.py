"""What a DataModule or a model draws before the first step is alike on all ranks and attempts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Shell

pytestmark = pytest.mark.slow

CODE = """
import json, os, random
import numpy as np, pytorch_lightning as pl, torch
from torch.utils.data import DataLoader, TensorDataset, random_split

class Data(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def prepare_data(self):  # on one rank a node
        random.random(), np.random.rand(3), torch.rand(3)

    def setup(self, stage=None):
        data = TensorDataset(torch.arange(64.0)[:, None])
        self.train, self.val = random_split(data, [48, 16])
        rank, attempt = self.trainer.global_rank, os.environ["HPC_TRAIN_ATTEMPT"]
        labels = list({f"class {number}" for number in range(20)})
        split, mixed = list(self.train.indices), np.random.permutation(8).tolist()
        drawn = [split, random.random(), mixed, labels]
        with open(f"drawn-{attempt}-{rank}.json", "w") as file:
            json.dump(drawn, file)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=4)

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        if self.trainer.global_step == 3:
            rank, attempt = self.trainer.global_rank, os.environ["HPC_TRAIN_ATTEMPT"]
            with open(f"step-{attempt}-{rank}.json", "w") as file:
                json.dump([torch.rand(2).tolist(), random.random(), float(np.random.rand())], file)
        if self.trainer.global_step == 5 and not os.path.exists("failed"):
            open("failed", "w").close()
            os.kill(os.getpid(), 9)
        return self.layer(batch[0]).square().mean()

    def validation_step(self, batch, index):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0001)
"""
CONFIG = """
name: drawn
global_batch_size: 8
checkpoint: {every_n_steps: 2}
model: {class_path: drawn.Net}
data: {class_path: drawn.Data}
trainer: {max_steps: 8, accelerator: cpu}
"""


def told(folder: Path, what: str) -> list[list[object]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{what}-*.json"))]


def test_ranks_and_attempts_split_alike_and_their_dropout_differs(here: Shell) -> None:
    (here.folder / "drawn.py").write_text(CODE)
    (here.folder / "drawn.yaml").write_text(CONFIG)
    shape = ("--cluster", "local", "--nodes", 2, "--gpus", 1)
    here.hpc("submit", *shape, "drawn.yaml", "--wait")
    drawn = told(here.folder, "drawn")
    assert len(drawn) == 4, "two ranks, two attempts"
    assert drawn.count(drawn[0]) == 4
    first, second, *_ = told(here.folder, "step")
    assert all(a != b for a, b in zip(first, second, strict=True)), "two ranks at the same step"
