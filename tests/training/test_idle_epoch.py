"""A first epoch that trains nothing is told in a note, and none in which a weight may change."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytorch_lightning as pl
import torch
from torch.optim.lr_scheduler import CyclicLR, LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.resume.loss_watch import LossWatch

# Lightning's own remarks of a small Trainer, and of none that trains, which are none of ours.
pytestmark = pytest.mark.filterwarnings("ignore")
BATCHES = 4
SAID = "the learning rate was 0 through the whole first epoch, and no weight has changed"


class Idle(pl.LightningModule):
    """Its optimizer and its schedule are made by what it is given."""

    def __init__(self, make: Callable[[Any], Any], lr: float = 0.1) -> None:
        super().__init__()
        self.make, self.lr = make, lr
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        return self.make(optimizer)


class Explicit(Idle):
    def configure_optimizers(self):
        if self.lr:
            return None
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class Warms(Idle):
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr)
        return [optimizer], [LambdaLR(optimizer, lambda epoch: epoch / 3)]


class ByHand(Idle):
    """Of an optimizer that Lightning does not know."""

    def training_step(self, batch, _):
        loss = self.layer(batch[0]).square().mean()
        with torch.no_grad():
            self.layer.weight -= 0.1
        return loss

    def configure_optimizers(self):
        return None


class Frozen(Explicit):
    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__(make)
        self.requires_grad_(requires_grad=False)

    def training_step(self, batch, _):
        return None


class Watched(pl.Callback):
    """Asks where the adapter does."""

    def __init__(self, folder: Path, rank: int = 0, rate: str = "") -> None:
        self.attempt = RunDir(folder).attempt(0)
        self.attempt.path.mkdir(parents=True, exist_ok=True)
        here = SimpleNamespace(run=RunDir(folder), attempt=0, rank=rank, rate=rate)
        self.watch = LossWatch(lambda: None, cast("Any", here))

    def on_train_start(self, trainer, pl_module):
        self.watch.begin(pl_module, resumed=False)

    def on_before_backward(self, *_: Any) -> None:
        self.watch.loss_came()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self.watch.batch_ended()

    def on_train_epoch_end(self, trainer, pl_module):
        self.watch.epoch_ended(pl_module)


def notes_of(
    module: pl.LightningModule, folder: Path, batches: int = BATCHES, **more: Any
) -> list[str]:
    watched = Watched(folder, **more)
    pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[watched],
    ).fit(module, DataLoader(TensorDataset(torch.ones(batches, 1)), batch_size=1))
    return read_notes(watched.attempt)


def step(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda optimizer: {
        "optimizer": optimizer,
        "lr_scheduler": {"scheduler": make(optimizer), "interval": "step"},
    }


def plain(optimizer: Any) -> Any:
    return optimizer


def at(kind: type, further: int) -> str:
    method: Any = kind.configure_optimizers  # type: ignore[attr-defined]
    return f"test_idle_epoch.py:{inspect.getsourcelines(method)[1] + further}"


def test_a_model_without_an_optimizer_is_told_with_its_line(tmp_path: Path) -> None:
    (note,) = notes_of(Explicit(plain), tmp_path)
    assert "configure_optimizers of tests.training.test_idle_epoch.Explicit gives None (" in note
    assert f"{at(Explicit, 2)}: return None), so that no weight is trained; where it is" in note
    assert note.endswith("to learn: return torch.optim.Adam(self.parameters(), lr=1e-3)")


def test_a_warmup_that_begins_at_0_and_is_stepped_once_an_epoch_is_told(tmp_path: Path) -> None:
    (note,) = notes_of(Warms(plain), tmp_path)
    assert note.startswith(f"{SAID}: LambdaLR of tests.training.test_idle_epoch.Warms (")
    assert f"{at(Warms, 2)}) begins at 0; of a warmup write (epoch + 1) / N, or" in note
    assert note.endswith('step it once a batch: "interval": "step"')


def test_a_factor_of_0_in_each_step_is_told(tmp_path: Path) -> None:
    zero = step(lambda optimizer: LambdaLR(optimizer, lambda it: it // 100))
    (note,) = notes_of(Idle(zero), tmp_path)
    assert f"{SAID}: LambdaLR of " in note
    assert "above 0, as (step + 1) / N of a warmup" in note


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("model.init_args.lr is 0", " has lr 0 (model.init_args.lr is 0); write another"),
        ("model.init_args.lr is 0.5", " has lr 0; write another"),
        ("", " has lr 0; write another"),
    ],
)
def test_a_rate_of_0_is_told_with_its_key(tmp_path: Path, rate: str, said: str) -> None:
    (note,) = notes_of(Idle(plain, lr=0.0), tmp_path, rate=rate)
    assert note.startswith(f"{SAID}: the optimizer of tests.training.test_idle_epoch.Idle (")
    assert note.endswith(said)


@pytest.mark.parametrize(
    "module",
    [
        Idle(plain),
        Idle(step(lambda it: LambdaLR(it, lambda n: n / 2))),
        Idle(step(lambda it: LambdaLR(it, lambda n: n % BATCHES / BATCHES))),  # 0 at both ends
        Idle(step(lambda it: CyclicLR(it, 0.0, 0.1, step_size_up=BATCHES // 2))),
        Idle(lambda it: [[it], [LambdaLR(it, lambda epoch: (epoch + 1) / 3)]]),
        ByHand(plain),
        Frozen(plain),
    ],
)
def test_nothing_is_said_where_a_weight_changes_or_none_is_to(
    tmp_path: Path, module: pl.LightningModule
) -> None:
    assert notes_of(module, tmp_path) == []


def test_an_epoch_of_one_step_says_nothing_of_a_rate_that_begins_at_0(tmp_path: Path) -> None:
    assert notes_of(Warms(plain), tmp_path, batches=1) == []


def test_rank_0_alone_tells(tmp_path: Path) -> None:
    assert notes_of(Explicit(plain), tmp_path, rank=1) == []
