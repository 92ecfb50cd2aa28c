"""An optimizer and its schedule returned side by side, which Lightning refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_several_optimizers import refusal

NETS = """\
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def training_step(self, batch, batch_idx):
        return self.a(batch).sum()
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        lower = ReduceLROnPlateau(optimizer)
        return %s
class Data(LightningDataModule):
    def train_dataloader(self): return [torch.ones(2, 1)]
"""


@pytest.mark.parametrize(
    ("returned", "write"),
    [
        ("optimizer, sched", "return [optimizer], [sched]"),
        ("[optimizer, sched]", "return [optimizer], [sched]"),
        (
            "optimizer, lower",
            (
                'return {"optimizer": optimizer, "lr_scheduler": {"scheduler": lower, "monitor":'
                ' "val_loss"}}'
            ),
        ),
        (
            "optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)",
            "return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]",
        ),
    ],
)
def test_such_a_pair_is_refused_with_its_own_names(
    tmp_path: Path, returned: str, write: str
) -> None:
    said = refusal(tmp_path, NETS % returned)
    assert said == (
        f"3: model.class_path: nets.Net returns {returned} (nets.py:11), which Lightning refuses:"
        f" a schedule is no optimizer | {write}"
    )
    assert "no optimizer" not in refusal(tmp_path, NETS % write.removeprefix("return "))


@pytest.mark.parametrize(
    "returned",
    [
        "[optimizer], [sched]",
        "([optimizer], sched)",
        "{'optimizer': optimizer, 'lr_scheduler': sched}",
        "optimizer",
        "made(optimizer), sched",
        "optimizer, made(sched)",
        "(optimizer, sched) if self.a else optimizer",
    ],
)
def test_what_may_be_taken_is_none(tmp_path: Path, returned: str) -> None:
    assert "no optimizer" not in refusal(tmp_path, NETS % returned)
