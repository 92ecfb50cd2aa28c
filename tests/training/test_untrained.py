"""A model that optimizes by hand and takes no step: a failure by its text, else a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import RunFailedError
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.ranks import read_exits, read_notes
from tests.training.launched import make_plan, run_ranks

MODELS = """\
import torch
import pytorch_lightning as pl
from hpc_train.examples.digits import DigitsClassifier

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = DigitsClassifier(8)
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.work(loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
    def work(self, loss): ...

class Waits(Net):
    def work(self, loss):
        if loss < 0:
            self.optimizers().step()

class Steps(Net):
    def work(self, loss):
        self.manual_backward(loss)
        self.trainer.optimizers[0].step()

class Without(Net):
    def configure_optimizers(self): return None
"""


def fit_of(name: str, folder: Path, **trainer: int) -> tuple[list[int], str, list[str]]:
    """The exit code, what failed, and the notes of a training of that model."""
    (folder / "manual.py").write_text(MODELS)
    model = ObjectSpec(f"manual.{name}", {})
    ended = run_ranks(
        make_plan(folder, ranks_per_node=1, model=model, trainer=trainer), folder / "run"
    )
    (record,) = read_exits(ended.attempt)
    notes = [it for it in read_notes(ended.attempt) if "no optimizer step" in it]
    return ended.codes, f"{record.error} {record.where.replace(f'{folder}/', '')}".strip(), notes


def test_a_text_that_steps_nothing_fails_at_the_end_of_the_first_epoch(tmp_path: Path) -> None:
    codes, said, _ = fit_of("Net", tmp_path, max_epochs=3)
    assert codes == [RunFailedError.exit_code]
    assert said == (
        "22 batches and no optimizer step: manual.Net sets automatic_optimization = False, and its"
        " training_step steps no optimizer (leave that line out, or write opt = self.optimizers();"
        " opt.zero_grad(); self.manual_backward(loss); opt.step()) manual.py:10"
    )


@pytest.mark.parametrize(
    ("name", "has_note", "batches"), [("Waits", True, -1), ("Steps", False, -1), ("Net", False, 0)]
)
def test_what_may_be_meant_is_a_note_at_most(
    tmp_path: Path, name: str, has_note: bool, batches: int
) -> None:
    limits = {} if batches < 0 else {"limit_train_batches": batches}
    codes, said, notes = fit_of(name, tmp_path, max_epochs=1, **limits)
    assert codes == [0], said
    assert bool(notes) is has_note
    assert not notes or notes[0].startswith("22 batches and no optimizer step: with automatic_")


def test_without_an_optimizer_nothing_is_said(tmp_path: Path) -> None:
    codes, said, notes = fit_of("Without", tmp_path, max_epochs=1)
    assert (codes, notes) == ([0], []), said
