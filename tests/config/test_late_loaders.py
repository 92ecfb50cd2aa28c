"""The Trainer's train_dataloader in configure_optimizers, where it is None."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL

NETS = """\
import torch
from pytorch_lightning import Callback, LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx):
        return self.a(batch).sum()
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        LINES
        return RETURNED
    MORE
class Data(LightningDataModule):
    def train_dataloader(self): return [torch.ones(2, 1)]
class Early(Callback):
    def setup(self, trainer, pl_module, stage): print(trainer.estimated_stepping_batches)
"""
CYCLE = "s = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, "
COSINE = "s = torch.optim.lr_scheduler.CosineAnnealingLR(opt, "
LOADER = "self.trainer.train_dataloader"
ALL = "self.trainer.estimated_stepping_batches"
TOTAL = f"write total_steps={ALL} in place of "
EACH_STEP = '[opt], [{"scheduler": s, "interval": "step"}]'
EPOCHS = "{accelerator: cpu, max_epochs: 2}"


def refusal(
    folder: Path, lines: str, more: str = "", trainer: str = EPOCHS, returned: str = EACH_STEP
) -> str:
    text = NETS.replace("LINES", lines.replace("; ", "\n        ")).replace("MORE", more)
    (folder / "nets.py").write_text(text.replace("RETURNED", returned))
    file = folder / "cfg.yaml"
    file.write_text(f"{MINIMAL}trainer: {trainer}\n")
    try:
        check_training(load(file), workdir=folder)
    except ConfigError as error:
        return f"{error.message} | {error.hint}".replace(f"{file}:", "")
    return ""


@pytest.mark.parametrize(
    ("lines", "line", "fix"),
    [
        (
            f"{CYCLE}epochs=2, steps_per_epoch=len({LOADER}))",
            11,
            f"{TOTAL}epochs and steps_per_epoch",
        ),
        (
            f"n = len({LOADER}); {CYCLE}steps_per_epoch=n, epochs=self.trainer.max_epochs)",
            11,
            f"{TOTAL}steps_per_epoch and epochs",
        ),
        (
            f"t = self.trainer; n = len(t.train_dataloader); {CYCLE}epochs=3, steps_per_epoch=n)",
            12,
            f"{TOTAL}epochs and steps_per_epoch",
        ),
        (
            f"{COSINE}self.trainer.max_epochs * len({LOADER}))",
            11,
            f"write {ALL} // self.trainer.max_epochs for len({LOADER})",
        ),
        (
            f"loader = {LOADER}; n = len(loader); {COSINE}n * 2)",
            12,
            f"write {ALL} // self.trainer.max_epochs for len(loader)",
        ),
        (
            f"n = len({LOADER}.dataset); {COSINE}n)",
            11,
            "take the loader of the data: self.trainer.datamodule.train_dataloader()",
        ),
    ],
)
def test_it_is_refused_with_its_line_and_what_to_write(
    tmp_path: Path, lines: str, line: int, fix: str
) -> None:
    said = "nets.Net.configure_optimizers asks self.trainer.train_dataloader"
    assert refusal(tmp_path, lines) == (
        f"3: model.class_path: {said} (nets.py:{line}), which is None there | {fix}"
    )


def test_a_schedule_that_is_stepped_each_epoch_is_told_to_be_stepped_each_step(
    tmp_path: Path,
) -> None:
    lines = f"{CYCLE}epochs=2, steps_per_epoch=len({LOADER}))"
    assert refusal(tmp_path, lines, returned="[opt], [s]").endswith(
        'and "interval": "step" beside "scheduler" in the dict that is returned'
    )


def test_without_a_number_of_epochs_all_steps_are_named(tmp_path: Path) -> None:
    told = refusal(tmp_path, f"{COSINE}len({LOADER}))", trainer="{max_steps: 9}")
    assert told.endswith(f"| write {ALL}, the steps of the whole training")


@pytest.mark.parametrize(
    "lines",
    [
        f"{CYCLE}total_steps={ALL})",
        f"{ALL}; n = len({LOADER}); {COSINE}n)",
        f"self.trainer.fit_loop.setup_data(); n = len({LOADER}); {COSINE}n)",
        f"n = len({LOADER}) if {LOADER} is not None else 5; {COSINE}n)",
        f"n = len({LOADER}) if {LOADER} else 5; {COSINE}n)",
        f"n = {LOADER} and len({LOADER}); {COSINE}9)",
        f"loader = {LOADER} or [1]; n = len(loader); {COSINE}n)",
        f"if self.a.bias is None: n = len({LOADER})\n        {COSINE}9)",
        f"try: n = len({LOADER})\n        except TypeError: n = 9\n        {COSINE}n)",
        f"s = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: step / len({LOADER}))",
        f"n = len(self.trainer.datamodule.train_dataloader()); {COSINE}n)",
        f"print({LOADER}); {COSINE}9)",
        f"loader = {LOADER}; loader = [1]; n = len(loader); {COSINE}n)",
    ],
)
def test_what_may_be_right_is_left_alone(tmp_path: Path, lines: str) -> None:
    assert refusal(tmp_path, lines) == ""


def test_a_hook_that_comes_later_may_ask(tmp_path: Path) -> None:
    more = f"def on_train_start(self): self.n = len({LOADER})"
    assert refusal(tmp_path, f"{COSINE}9)", more) == ""


def test_a_callback_that_has_the_loaders_made_is_left_alone(tmp_path: Path) -> None:
    trainer = "{max_epochs: 2, callbacks: [{class_path: nets.Early}]}"
    assert refusal(tmp_path, f"n = len({LOADER}); {COSINE}n)", trainer=trainer) == ""
