"""A batch that training_step leaves out by returning None is noted for several ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

HEAD = """\
import pytorch_lightning as pl
import torch

class Net(pl.LightningModule):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""
DATA = "\nclass Data(pl.LightningDataModule):\n    def train_dataloader(self): return [1]\n"
STEP = """\
    def training_step(self, batch, batch_idx):
        loss = self(batch).mean()
        if {test}:
            {leaves}
        return loss
"""
OUT = "nets.py:10 returns None: with several ranks no rank may leave a batch out; leave such"
OUT += " samples out in the data set"
TIMES_0 = ", or compute the loss of that batch as well and write `return loss * 0`"
TEST = "batch.max() > 9"


def notes_of(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str, ranks: int = 2) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, f"{HEAD}{body}{DATA}", "nets.py")
    config = f"{MINIMAL}trainer: {{accelerator: cpu}}\nslurm: {{gpus_per_node: {ranks}}}\n"
    return [it for it in api.load(write(folder, config)).notes if "returns None" in it]


@pytest.mark.parametrize("leaves", ["return None", "return"])
def test_it_is_noted_with_its_line_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    body = STEP.format(test=TEST, leaves=leaves)
    assert notes_of(tmp_path, monkeypatch, body) == [OUT + TIMES_0]


def test_a_loss_that_is_no_number_is_not_multiplied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = STEP.format(test="not torch.isfinite(loss)", leaves="return None")
    assert notes_of(tmp_path, monkeypatch, body) == [OUT]


def test_one_in_a_loop_and_one_of_an_expression_are_told_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = STEP.format(test=TEST, leaves="return None").replace(
        "return loss\n", "return None if batch.min() < 0 else loss\n"
    )
    first, second = notes_of(tmp_path, monkeypatch, body)
    assert first.startswith("nets.py:10 ")
    assert second.startswith("nets.py:11 ")
    base = HEAD.replace("Net(", "Base(") + STEP.format(test=TEST, leaves="return")
    child = f"{base}\nclass Net(Base):\n    pass\n{DATA}"
    write(tmp_path, child, "nets.py")
    config = f"{MINIMAL}trainer: {{accelerator: cpu}}\nslurm: {{nodes: 2, gpus_per_node: 1}}\n"
    assert OUT + TIMES_0 in api.load(write(tmp_path, config)).notes


@pytest.mark.parametrize(
    "body",
    [
        STEP.format(test=TEST, leaves="return loss * 0"),
        STEP.format(test="self.trainer.world_size == 1", leaves="return None"),
        STEP.format(test=TEST, leaves="def other(): return None"),
        "    automatic_optimization = False\n"
        + STEP.format(test=TEST, leaves="return None").replace(
            "return loss\n", "self.manual_backward(loss); self.optimizers().step(); return loss\n"
        ),
    ],
)
def test_of_what_has_a_loss_each_time_or_optimizes_by_hand_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    assert notes_of(tmp_path, monkeypatch, body) == []


def test_one_rank_may_leave_a_batch_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = STEP.format(test=TEST, leaves="return None")
    assert notes_of(tmp_path, monkeypatch, body, ranks=1) == []
