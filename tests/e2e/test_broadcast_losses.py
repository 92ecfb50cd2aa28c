"""A loss that torch broadcasts is told with the run, of a config and of a script alike."""

from __future__ import annotations

from tests.e2e.conftest import Shell

NETS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(8, 1), nn.MSELoss()

    def training_step(self, batch, _):
        x, y = batch
        return self.loss(self.layer(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.l1_loss(y, self.layer(x)), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Data(LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        x = torch.randn(48, 8)
        return DataLoader(TensorDataset(x, x.sum(1)), self.batch_size)

    val_dataloader = train_dataloader
"""
CONFIG = """\
name: nets
global_batch_size: 16
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer: {max_epochs: 2, accelerator: cpu}
slurm: {nodes: 1, gpus_per_node: 2, time: "0:10:00"}
preflight: off
"""
SCRIPT = """\
import os
import torch
import torch.multiprocessing as mp


def train(rank, size):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for rows in (6, 6, 4):
        x = torch.randn(rows, 8)
        loss = torch.nn.functional.huber_loss(model(x), x.sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    if "RANK" in os.environ and "OWN" not in os.environ:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        mp.spawn(train, (2,), nprocs=2)
"""
BETWEEN = "values of different samples are compared"


def told(function: str, line: str, has: str, to: str, fix: str) -> str:
    given = f"{function} ({line}) is given {has}, which torch broadcasts to {to}"
    return f"{given}: {BETWEEN}; write {fix}"


def test_a_config_whose_steps_compare_a_column_with_a_row_is_noted_once_for_each_line(
    here: Shell,
) -> None:
    (here.folder / "nets.py").write_text(NETS)
    (here.folder / "nets.yaml").write_text(CONFIG)
    notes = [  # Lightning validates two batches before its first step
        told(
            *("l1_loss", "nets.py:18", "an input of shape [8] and a target of [8, 1]", "[8, 8]"),
            "self.layer(x).squeeze(1)",
        ),
        told(
            *("mse_loss", "nets.py:14", "an input of shape [8, 1] and a target of [8]", "[8, 8]"),
            "self.layer(x).squeeze(1)",
        ),
    ]
    shown = here.hpc("run", "nets.yaml")
    assert [(shown.stdout + shown.stderr).count(note) for note in notes] == [1, 1]
    assert here.status("nets")["attempts"][0]["notes"] == notes
    waited = here.hpc("submit", "--cluster", "local", "nets.yaml", "--name", "other", "--wait")
    assert [waited.stderr.count(note) for note in notes] == [1, 1]
    assert f"    note     {notes[1]}\n" in here.hpc("status", "other").stdout


def test_a_script_is_told_of_it_also_where_it_starts_its_own_ranks(here: Shell) -> None:
    (here.folder / "train.py").write_text(SCRIPT)
    note = told(
        *("huber_loss", "train.py:12", "an input of shape [6, 1] and a target of [6]", "[6, 6]"),
        "model(x).squeeze(1)",
    )
    words = ("run", "train.py", "--gpus", 2, "script.accelerator=cpu", "preflight=off")
    here.hpc(*words)
    assert here.status("train")["attempts"][0]["notes"] == [note]
    here.environment["OWN"] = "1"
    here.hpc(*words, "script.launcher=none", "--name", "own")
    assert here.status("own")["attempts"][0]["notes"] == [note]
