"""Schedules over all steps that are stepped once an epoch; and a callback's setup."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

MODEL = """\
import torch
import pytorch_lightning as pl
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
    def training_step(self, batch): return self.layer(batch)
    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), 0.1)
        n = self.trainer.estimated_stepping_batches
        {made}
        return {returned}

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]

class Own(pl.Callback):
    def setup(self, trainer, pl_module): ...
"""
ALL = "self.trainer.estimated_stepping_batches"
CYCLE = f"sched = OneCycleLR(opt, max_lr=0.1, total_steps={ALL})"
TOLD = '{"scheduler": sched, "interval": "step"}'


def noted(folder: Path, made: str, returned: str, *, text: str = MODEL) -> list[str]:
    write(folder, text.replace("{made}", made).replace("{returned}", returned), "nets.py")
    return [it for it in api.load(write(folder, MINIMAL)).notes if "once an epoch" in it]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (CYCLE, "OneCycleLR"),
        (f"sched = CosineAnnealingLR(opt, T_max={ALL})", "CosineAnnealingLR"),
        ("sched = LinearLR(opt, 0.1, 1.0, n)", "LinearLR"),
    ],
)
@pytest.mark.parametrize(
    ("returned", "fix"),
    [
        ("[opt], [sched]", f"write return [opt], [{TOLD}]"),
        (
            "{'optimizer': opt, 'lr_scheduler': sched}",
            f'write "lr_scheduler": {TOLD}',
        ),
    ],
)
def test_it_is_noted_with_the_interval(
    tmp_path: Path, made: str, kind: str, returned: str, fix: str
) -> None:
    says = f"nets.Net makes a {kind} over all steps, and it is stepped once an epoch (line 12)"
    assert noted(tmp_path, made, returned) == [f"{says}: {fix}"]


@pytest.mark.parametrize(
    ("made", "returned"),
    [
        (CYCLE, f"[opt], [{TOLD}]"),
        (CYCLE, "{'optimizer': opt, 'lr_scheduler': {'scheduler': sched, 'interval': 'step'}}"),
        (CYCLE, "opt"),
        ("sched = CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)", "[opt], [sched]"),
        (f"sched = OneCycleLR(opt, 0.1, {ALL} // 2)", "[opt], [sched]"),
    ],
)
def test_what_is_stepped_each_step_or_counts_epochs_is_not_noted(
    tmp_path: Path, made: str, returned: str
) -> None:
    assert noted(tmp_path, made, returned) == []


def test_who_steps_it_in_a_hook_knows_when(tmp_path: Path) -> None:
    own = "    def lr_scheduler_step(self, scheduler, metric): ...\n    def training_step"
    text = MODEL.replace("    def training_step", own)
    assert noted(tmp_path, CYCLE, "[opt], [sched]", text=text) == []


def test_a_setup_of_a_callback_is_told_as_lightning_calls_it(tmp_path: Path) -> None:
    write(tmp_path, MODEL.replace("{made}", "").replace("{returned}", "opt"), "nets.py")
    config = write(tmp_path, f"{MINIMAL}trainer: {{callbacks: [{{class_path: nets.Own}}]}}\n")
    with pytest.raises(ConfigError) as caught:
        api.load(config)
    assert "does not take stage" in caught.value.message
    assert caught.value.hint == "write def setup(self, trainer, pl_module, stage)"
