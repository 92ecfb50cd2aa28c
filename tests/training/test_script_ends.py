"""A script that ends with 0 is no success where its Trainer did nothing, or what it did failed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.ranks import ExitRecord, read_exits, read_notes
from tests.training.test_script_fits import Scripted

SCRIPT = """\
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

class Net(pl.LightningModule):
    def __init__(self, raises=None, at=0):
        super().__init__()
        self.layer, self.raises, self.at = torch.nn.Linear(1, 1), raises, at
    def training_step(self, batch, batch_idx):
        if self.raises is not None and batch_idx == self.at:
            raise self.raises
        return self.layer(batch).mean()
    def predict_step(self, batch, batch_idx):
        return batch
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

class Enough(Exception): ...

DATA = DataLoader(torch.randn(16, 1), batch_size=4)
def make():
    return pl.Trainer(max_epochs=1, logger=False)
def fit(*given):
    try:
        make().fit(Net(*given), DATA)
    except Exception as error:
        print("caught", error)
"""


def end_of(folder: Path, end: str, *, may: bool = False) -> tuple[int, ExitRecord]:
    run = Scripted(folder, "ends")
    (folder / "ends.py").write_text(SCRIPT + end, encoding="utf-8")
    run.script = dataclasses.replace(ScriptPlan("ends.py", []), may_take_no_steps=may)
    (code,) = run.go(1)
    (record,) = read_exits(run.dir.attempt(0))
    return code, record


def test_a_trainer_that_was_told_to_do_nothing_is_no_training(tmp_path: Path) -> None:
    code, record = end_of(tmp_path, "make()\n")
    assert code == 10
    assert record.error == (
        "the script ended with exit code 0 and took no optimizer step: it made a Trainer"
        " (ends.py:22) and called none of fit, test, validate, predict"
        " (write trainer.fit(model, data) at its end; if that is right:"
        " script.may_take_no_steps=true)"
    )


@pytest.mark.parametrize(
    ("end", "error", "where"),
    [
        ("fit(ValueError('wrong shape'))", "fit of ends.py:25 ended with ValueError: wrong", 11),
        ("fit(ValueError('late'), 2)", "ValueError: late, which the script caught", 11),
        ("fit(Enough('early'))", "ended with Enough: early, which", 11),
        ("fit(ValueError('x')); fit(TypeError('y'))", "TypeError: y, which the script caught", 11),
    ],
)
def test_a_fit_that_failed_and_was_caught_is_no_training(
    tmp_path: Path, end: str, error: str, where: int
) -> None:
    code, record = end_of(tmp_path, f"{end}\n")
    assert code == 10, record
    assert error in record.error
    assert record.where.endswith(f"ends.py:{where}")
    assert "Traceback" in record.traceback
    assert record.error.endswith("write `raise` at the end of the except block")


@pytest.mark.parametrize(
    "end",
    [
        "make().predict(Net(), DATA)",
        "fit(ValueError('too large')); fit()",
        "fit(); fit(ValueError('one of several'))",
        "fit(Enough('as a callback ends a training'), 2)",
        "make()\no = torch.optim.SGD(Net().parameters(), lr=0.1)\no.step()",
    ],
)
def test_a_script_that_has_trained_is_complete(tmp_path: Path, end: str) -> None:
    code, record = end_of(tmp_path, f"{end}\n")
    assert (code, record.kind) == (0, "finished")


def test_the_last_of_several_fits_that_was_caught_is_noted(tmp_path: Path) -> None:
    end_of(tmp_path, "fit(); fit(ValueError('one of several'))\n")
    (note,) = read_notes(Scripted(tmp_path, "ends").dir.attempt(0))
    assert note == (
        "its last fit of ends.py:25 ended with ValueError: one of several, which the script caught"
    )


def test_where_no_step_is_wanted_a_trainer_may_do_nothing(tmp_path: Path) -> None:
    assert end_of(tmp_path, "make()\n", may=True)[0] == 0
