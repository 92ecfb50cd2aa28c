"""Methods of a prediction that log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load
from hpc_train.config.validate import check_methods
from hpc_train.errors import ConfigError
from hpc_train.plan.evaluations import NEEDED
from tests.config.files import MINIMAL

CONFIG = f"{MINIMAL}trainer: {{accelerator: cpu}}\n"
NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Base(LightningModule):
    def training_step(self, batch, batch_idx): return self(batch)
    def configure_optimizers(self): return make(self)
    def forward(self, x): return x
    def validation_step(self, batch, batch_idx): self.log("a", 1)
%s
class Net(Base): ...
class Data(LightningDataModule):
    def train_dataloader(self): return []
    def predict_dataloader(self): return []
    def val_dataloader(self): return []
"""
INSTEAD = (
    "leave self.log out there and return the value, which comes into predictions.pt; or log it in"
    " test_step, for hpc-train test RUN"
)


def said_of(folder: Path, method: str, verb: str = "predict") -> tuple[str, list[str]]:
    """The refusal of an evaluation, and the notes of a submission."""
    lines = "".join(f"    {it}\n" for it in method.splitlines())
    (folder / "nets.py").write_text(NETS % lines)
    file = folder / "cfg.yaml"
    file.write_text(CONFIG)
    notes = [it for it in notes_on_code(load(file), workdir=folder) if "logs" in it]
    try:
        check_methods(load(file), NEEDED[verb], verb, workdir=folder)  # type: ignore[index]
    except ConfigError as error:
        return f"{error.message} | {error.hint}", notes
    return "", notes


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ('def predict_step(self, batch, batch_idx):\n    self.log("a", 1)\n    return batch',
         "predict_step logs (nets.py:8)"),
        (("def predict_step(self, batch, batch_idx):\n    x = batch\n    self.log_dict({})\n"
         "    return x"), "predict_step logs (nets.py:9)"),
        ('def on_predict_epoch_end(self): self.log("a", 1)',
         "on_predict_epoch_end logs (nets.py:7)"),
    ],
)  # fmt: skip
def test_what_a_prediction_surely_logs_is_refused_of_it_and_noted_before(
    tmp_path: Path, method: str, where: str
) -> None:
    refused, notes = said_of(tmp_path, method)
    assert refused == f"nets.Net.{where}, and Lightning takes no log of a prediction | {INSTEAD}"
    assert notes == [f"nets.Net.{where}, which hpc-train predict refuses: {INSTEAD}"]
    assert said_of(tmp_path, method, "validate")[0] == ""


@pytest.mark.parametrize(
    "method",
    [
        "def predict_step(self, batch, batch_idx): return self(batch)",
        ('def predict_step(self, batch, batch_idx):\n    if not self.trainer.predicting:\n'
        '        self.log("a", 1)\n    return batch'),
        'def predict_step(self, batch, batch_idx):\n    return batch\n    self.log("a", 1)',
        'def predict_step(self, batch, batch_idx):\n    self.logger.log_metrics({})\n    return 1',
        ("def predict_step(self, batch, batch_idx):\n    self.log('a', 1)\n    return batch\n"
        "def log(self, name, value): print(name, value)"),
        "@handed_on\ndef predict_step(self, batch, batch_idx):\n    self.log('a', 1)",
        "def test_step(self, batch, batch_idx): self.log('a', 1)",
    ],
)  # fmt: skip
def test_what_may_predict_is_neither_refused_nor_noted(tmp_path: Path, method: str) -> None:
    assert said_of(tmp_path, method) == ("", [])
