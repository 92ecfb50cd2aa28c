"""A backward pass beside Lightning's own is refused before the queue, where it surely is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
import torch
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = self(batch).sum()
        opt = self.optimizers()
        STEP
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
MORE
class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str, more: str = "") -> str:
    """The refusal of a config of that model; empty where there is none."""
    monkeypatch.chdir(folder)
    text = NETS.replace("STEP", lines.replace("; ", "\n        "))
    write(folder, text.replace("MORE", more), "nets.py")
    try:
        api.load(write(folder, MINIMAL))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


@pytest.mark.parametrize(
    "lines",
    [
        "loss.backward(); return loss",
        'loss.backward(); return {"loss": loss}',
        "loss.backward(); opt.step(); opt.zero_grad(); return loss",
        'loss.backward(); self.log("train_loss", loss.detach()); return loss',
    ],
)
def test_a_loss_that_is_given_to_lightning_has_no_backward_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    assert told(tmp_path, monkeypatch, lines) == (
        "cfg.yaml:3: model.class_path: nets.Net.training_step calls loss.backward() (nets.py:8),"
        " which Lightning does itself -> leave it out, and the optimizer's zero_grad() and step():"
        " Lightning does all three; or write self.automatic_optimization = False in __init__ to do"
        " them yourself"
    )


@pytest.mark.parametrize("step", ["opt.step()", "self.optimizers().step()"])
def test_nor_is_its_optimizer_stepped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The next backward spoke of an operation in place."""
    for lines in (f"{step}; opt.zero_grad(); return loss", f"opt.zero_grad(); {step}; return loss"):
        said = told(tmp_path, monkeypatch, lines)
        assert f"nets.Net.training_step calls {step} (nets.py:" in said
        assert (
            "which Lightning does itself -> leave it out, and the optimizer's zero_grad()" in said
        )


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ("opt.step(); return loss", "    automatic_optimization = False"),
        ("if self.x: opt.step(); return loss", ""),
        ("opt = self.sched; opt.step(); return loss", ""),
        ("opt.step(); loss = self(batch).mean(); return loss", ""),
        ("self.lr_schedulers().step(); return loss", ""),
        ("self.optimizers().zero_grad(); return loss", ""),
        ("loss.backward(); return loss", "    automatic_optimization = False"),
        ("loss.backward(retain_graph=True); return loss", ""),
        ("if self.x: loss.backward(); return loss", ""),
        ("other = self.x(batch); other.backward(); return loss", ""),
        ("loss.backward(); loss = self(batch).mean(); return loss", ""),
        ("loss.backward(); loss += self(batch).mean(); return loss", ""),
        ("loss.backward(); return self(batch).mean()", ""),
        ("loss.backward(); opt.step(); opt.zero_grad()", ""),
        ("return loss", ""),
        ("self.manual_backward(loss); return loss", "    automatic_optimization = False"),
        ("loss.backward(); return loss", "    def backward(self, loss): ..."),
        ("loss.backward(); return loss", "    def configure_optimizers(self): return None"),
    ],
)
def test_what_may_well_train_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, more: str
) -> None:
    assert told(tmp_path, monkeypatch, lines, more) == ""
