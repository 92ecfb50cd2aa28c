"""Warmups of many steps that are stepped once an epoch: a note at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

MODEL = """\
import torch
import pytorch_lightning as pl
from torch.optim.lr_scheduler import ConstantLR, LambdaLR, LinearLR
from schedules import get_cosine_schedule_with_warmup

class Net(pl.LightningModule):
    def __init__(self, warmup_steps: int = 500, total: int = 9000):
        super().__init__()
        self.save_hyperparameters()
        self.warmup_steps = warmup_steps
    def training_step(self, batch): return self.layer(batch)
    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), 0.1)
        warmup = 500
        def rate(current_step):
            if current_step < self.warmup_steps:
                return current_step / max(1, self.warmup_steps)
            return 1.0
        sched = SCHED
        return RETURNED

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""
PAIR = "[opt], [sched]"
TOLD = '{"scheduler": sched, "interval": "step"}'
BY_STEPS = "LambdaLR(opt, lambda step: min(1.0, step / warmup))"


def noted(
    folder: Path, made: str, returned: str = PAIR, *, trainer: str = "max_epochs: 3", more: str = ""
) -> list[str]:
    write(folder, MODEL.replace("SCHED", made).replace("RETURNED", returned), "nets.py")
    write(folder, "def get_cosine_schedule_with_warmup(*given, **words): pass\n", "schedules.py")
    config = MINIMAL.replace("class_path: nets.Net", f"class_path: nets.Net{more}")
    loaded = api.load(write(folder, f"{config}trainer: {{{trainer}}}\n"))
    return [it for it in loaded.notes if "warmup of" in it]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("made", "number"),
    [
        (BY_STEPS, "500 steps (warmup)"),
        ("LambdaLR(opt, lambda step: min(1.0, (step + 1) / 500))", "500 steps"),
        ("LambdaLR(opt, lr_lambda=lambda step: min(1.0, step / 500))", "500 steps"),
        ("LambdaLR(opt, lr_lambda=[lambda step: min(1.0, step / 500)])", "500 steps"),
        ("LambdaLR(opt, lambda e: min(1.0, e / 500))", "500 steps"),
        (
            "LambdaLR(opt, lambda e: min(1.0, e / self.hparams.warmup_steps))",
            "500 steps (self.hparams.warmup_steps)",
        ),
        ("LambdaLR(opt, rate)", "500 steps (self.warmup_steps)"),
        ("LinearLR(opt, 0.01, total_iters=self.warmup_steps)", "500 steps (self.warmup_steps)"),
        (
            "get_cosine_schedule_with_warmup(opt, num_warmup_steps=100, num_training_steps=9000)",
            "100 steps",
        ),
        ("get_cosine_schedule_with_warmup(opt, 100, 9000)", "100 steps"),
    ],
)
def test_it_is_noted_with_the_interval(tmp_path: Path, made: str, number: str) -> None:
    kind = made.partition("(")[0]
    says = f"nets.Net makes a {kind} with a warmup of {number}, and it is stepped"
    says += f" once an epoch, 3 times in all (line 19): write return [opt], [{TOLD}]"
    assert noted(tmp_path, made) == [says]


@pytest.mark.parametrize(
    ("returned", "fix"),
    [
        ("{'optimizer': opt, 'lr_scheduler': sched}", f'write "lr_scheduler": {TOLD}'),
        (
            "{'optimizer': opt, 'lr_scheduler': {'scheduler': sched, 'monitor': 'val_loss'}}",
            'write "interval": "step" beside "scheduler"',
        ),
    ],
)
def test_each_form_of_what_is_returned_has_its_own(tmp_path: Path, returned: str, fix: str) -> None:
    (said,) = noted(tmp_path, BY_STEPS, returned)
    assert said.endswith(f": {fix}")


def test_the_number_is_that_of_the_config(tmp_path: Path) -> None:
    made, few = "LambdaLR(opt, rate)", ", init_args: {warmup_steps: 20}"
    assert noted(tmp_path, made, more=few, trainer="max_epochs: 5") == []
    (said,) = noted(tmp_path, made, more=few, trainer="max_epochs: 2")
    assert "a warmup of 20 steps (self.warmup_steps)" in said


@pytest.mark.parametrize(
    ("made", "returned", "trainer"),
    [
        (BY_STEPS, f"[opt], [{TOLD}]", "max_epochs: 3"),
        (BY_STEPS, "opt", "max_epochs: 3"),
        (BY_STEPS, PAIR, "max_epochs: 100"),
        (BY_STEPS, PAIR, "max_steps: 1000"),
        (BY_STEPS, PAIR, "max_epochs: -1"),
        ("LambdaLR(opt, lambda epoch: min(1.0, (epoch + 1) / 5))", PAIR, "max_epochs: 1"),
        ("LambdaLR(opt, lambda epoch: 1.0 if epoch < 900 else 0.1)", PAIR, "max_epochs: 3"),
        ("LambdaLR(opt, lambda epoch: 0.95 ** epoch)", PAIR, "max_epochs: 1"),
        ("LambdaLR(opt, lambda epoch: 1.0 if epoch < 200 else 0.1)", PAIR, "max_epochs: 3"),
        ("LambdaLR(opt, lambda step: rate.of(step) / 500)", PAIR, "max_epochs: 3"),
        ("LinearLR(opt, 0.01, total_iters=5)", PAIR, "max_epochs: 1"),
        ("ConstantLR(opt, 0.1, self.hparams.total.n)", PAIR, "max_epochs: 3"),
    ],
)
def test_a_warmup_of_epochs_and_one_that_is_stepped_each_step_are_not_noted(
    tmp_path: Path, made: str, returned: str, trainer: str
) -> None:
    assert noted(tmp_path, made, returned, trainer=trainer) == []
