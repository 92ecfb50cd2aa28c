"""A prediction without a predict_step, of a model whose forward takes a part of the batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_methods
from hpc_train.errors import ConfigError
from hpc_train.plan.evaluations import NEEDED
from tests.config.files import MINIMAL

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def forward(self, x): return self.head(x)
    def training_step(self, batch, batch_idx): return loss_of(self, batch)
    def configure_optimizers(self): return make(self)
    def test_step(self, batch, batch_idx):
        x, y = batch
        self.acc(self(x), y)
class Data(LightningDataModule):
    def train_dataloader(self): return DataLoader(self.train, 4, shuffle=True)
    def test_dataloader(self): return DataLoader(self.hold, 4)
    def predict_dataloader(self): return DataLoader(self.hold, 4)
    hold = bare = ()
"""
FORWARD = "def forward(self, x): return self.head(x)"
PREDICTED = "predict_dataloader(self): return DataLoader(self.hold, 4)"


def refused(folder: Path, text: str, verb: str = "predict") -> str:
    (folder / "nets.py").write_text(text)
    (folder / "cfg.yaml").write_text(f"{MINIMAL}trainer: {{accelerator: cpu}}\n")
    try:
        check_methods(load(folder / "cfg.yaml"), NEEDED[verb], verb, workdir=folder)  # type: ignore[index]
    except ConfigError as error:
        return f"{error.message}: {error.hint}"
    return ""


@pytest.mark.parametrize(
    ("old", "new", "apart"),
    [
        ("", "", "x, y = batch; return self(x)"),
        (PREDICTED, "predict_dataloader(self): return self.test_dataloader()", "x, y = batch"),
        ("x, y = batch", "x, y, _ = batch", "x, y, _ = batch; return self(x)"),
        ("self(x), y", "self.forward(x), y", "x, y = batch; return self.forward(x)"),
        ("self, x)", "self, x, mask=None)", "x, y = batch"),
    ],
)
def test_it_is_refused_with_the_step_to_write(
    tmp_path: Path, old: str, new: str, apart: str
) -> None:
    said = refused(tmp_path, NETS.replace(old, new) if old else NETS)
    told = "nets.Net has no predict_step, and Lightning's gives forward (nets.py:3) the whole batch"
    assert said.startswith(f"{told}, which test_step takes apart as x, y")
    assert f"write def predict_step(self, batch, batch_idx): {apart}" in said
    assert not refused(tmp_path, NETS, "test")


def test_both_methods_that_are_to_be_written_are_told_in_one_go(tmp_path: Path) -> None:
    bare = NETS.replace(f"    def {PREDICTED}\n", "")
    said = refused(tmp_path, bare)
    assert said.startswith(
        "nets.Data has no predict_dataloader, which predict calls: write def pre"
    )
    step = "write def predict_step(self, batch, batch_idx): x, y = batch; return self(x)"
    assert said.endswith(f"; for batches as there, in the model {step}")
    assert "predict_step" not in refused(
        tmp_path, bare.replace("x, y = batch", "x, y = two(batch)")
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def test_step", "def predict_step(self, b, i): return self(b[0])\n    def test_step"),
        (FORWARD, "def forward(self, *xs): return self.head(xs[0])"),
        (FORWARD, "def forward(self, x): return self.head(x[0] if isinstance(x, list) else x)"),
        (FORWARD, "def forward(self, x, y): return self.head(x)"),
        (PREDICTED, "predict_dataloader(self): return DataLoader(self.bare, 4)"),
        ("x, y = batch\n        self.acc(self(x), y)", "self.acc(self(batch), 1)"),
        ("self.acc(self(x), y)", "self.acc(self((x, y)), y)"),
        ("class Net(LightningModule)", "class Net(Own)"),
    ],
)  # fmt: skip
def test_what_may_work_is_not(tmp_path: Path, old: str, new: str) -> None:
    assert old in NETS
    assert not refused(tmp_path, NETS.replace(old, new))
