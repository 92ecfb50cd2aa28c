"""Weights that are NaN end a training at the next step, once a logged number tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.errors import RunFailedError
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.ranks import read_exits
from hpc_train.training.rank_config import rate_of
from hpc_train.training.resume.checkpoint import list_checkpoints
from tests.training.launched import make_plan, run_ranks

MODELS = """\
import torch
import pytorch_lightning as pl
from hpc_train.examples.digits import DigitsClassifier

class Net(pl.LightningModule):
    def __init__(self, lr: float = 0.1, shown: bool = False):
        super().__init__()
        self.net, self.shown = DigitsClassifier(4), shown
        self.lr = lr
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        loss = self.changed(loss)
        self.log("loss", loss, prog_bar=self.shown)
        return loss
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.log("val_loss", self.told(loss), sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)
    def changed(self, loss): return loss
    def told(self, loss): return loss

class Diverges(Net):
    def changed(self, loss):
        return loss * float("nan") if self.global_step > 3 else loss

class Unvalidated(Diverges):
    validation_step = None

class Tells(Net):
    def told(self, loss): return loss * float("nan")
"""
STEPS = 22  # of an epoch


def fit_of(name: str, folder: Path, ranks: int, **init_args: Any) -> tuple[list[Any], Any, Path]:
    """The exit codes, the first rank's record, and where its checkpoints are."""
    (folder / "lost.py").write_text(MODELS)
    plan = make_plan(
        folder,
        ranks_per_node=ranks,
        model=ObjectSpec(f"lost.{name}", init_args),
        trainer={"max_epochs": 30, "limit_val_batches": 2, "log_every_n_steps": 1},
    )
    ended = run_ranks(plan, folder / "run")
    return ended.codes, read_exits(ended.attempt)[0], folder / "run" / "checkpoints"


@pytest.mark.parametrize("ranks", [1, 2])
def test_they_end_it_on_all_ranks_behind_the_first_validation(tmp_path: Path, ranks: int) -> None:
    codes, record, checkpoints = fit_of("Diverges", tmp_path, ranks, lr=0.5)
    assert codes == [RunFailedError.exit_code] * ranks
    assert "is NaN after step" in record.error
    assert "lower the learning rate (model.init_args.lr is 0.5), or" in record.error
    assert record.step < 15 * STEPS, "a checkpoint is due at the end alone"
    assert not list_checkpoints(checkpoints, verify=False)


def test_without_a_validation_they_end_it_behind_an_epoch(tmp_path: Path) -> None:
    codes, record, _ = fit_of("Unvalidated", tmp_path, 1, shown=True)
    assert codes == [RunFailedError.exit_code]
    assert record.step < 15 * STEPS


def test_a_metric_that_is_nan_alone_ends_nothing_and_saves_nothing_more(tmp_path: Path) -> None:
    codes, _, checkpoints = fit_of("Tells", tmp_path, 1)
    assert codes == [0]
    assert [it.step for it in list_checkpoints(checkpoints, verify=False)] == [30 * STEPS]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"lr": 50.0, "hidden": 3}, "model.init_args.lr is 50.0"),
        ({"learning_rate": 1}, "model.init_args.learning_rate is 1"),
        (
            {"optimizer": {"init_args": {"lr": 3.0}}},
            "model.init_args.optimizer.init_args.lr is 3.0",
        ),
        ({"lr": 1.0, "optimizer": {"lr": 3.0}}, ""),
        ({"lr": "fast"}, ""),
        ({"hidden": 3}, ""),
    ],
)
def test_the_learning_rate_is_named_where_the_config_has_one(
    arguments: dict[str, Any], said: str
) -> None:
    assert rate_of({"class_path": "nets.Net", "init_args": arguments}) == said
