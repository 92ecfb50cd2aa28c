"""A schedule that is over before its training, told as the fit begins, and no other one."""

from __future__ import annotations

import inspect
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.optim.lr_scheduler import OneCycleLR, StepLR
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.fit_notes.short_schedule import check_schedules, schedule_steps

# Lightning's own remarks of a small Trainer, which are none of ours.
pytestmark = pytest.mark.filterwarnings("ignore")


class Net(pl.LightningModule):
    """Its schedule is made in one line."""

    def __init__(self, total: int, config: dict[str, Any], **others: Any) -> None:
        super().__init__()
        self.total, self.config, self.others = total, config, others
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), 0.1, 0.9)
        schedule = OneCycleLR(optimizer, 0.1, total_steps=self.total)
        return [optimizer], [
            {"scheduler": StepLR(optimizer, 1), "interval": "epoch"},
            {"scheduler": schedule, **self.config},
        ]


class Stops(Net):
    """It may end its training itself."""

    def on_train_epoch_end(self) -> None:
        self.trainer.should_stop = self.layer.weight.isnan().any().item()


class Steps(Net):
    """It steps its schedule by itself."""

    def lr_scheduler_step(self, scheduler, metric):
        if scheduler.last_epoch < 10:
            scheduler.step()


class Judged(pl.Callback):
    """Asks at the place where hpc-train does."""

    def __init__(self, folder: Path, start: object = None, stream: object = None) -> None:
        self.attempt = RunDir(folder).attempt(0)
        self.attempt.path.mkdir(parents=True, exist_ok=True)
        rank = SimpleNamespace(run=RunDir(folder), attempt=0, rank=0)
        self.state: Any = SimpleNamespace(start=start, stream=stream, rank=rank)
        self.said = ""

    def on_train_epoch_start(self, trainer, _):
        if trainer.current_epoch == 0 and not self.said:
            try:
                check_schedules(trainer, self.state)
            except ConfigError as error:
                self.said = f"{error.message} -> {error.hint}"


def taken(
    tmp_path: Path, net: Net, judged: Judged | None = None, **trainer: Any
) -> tuple[str, int | None]:
    """What is said at the begin, and the step at which torch refuses; None where it trains."""
    judged = judged or Judged(tmp_path)
    loader = DataLoader(TensorDataset(torch.ones(8, 1)), 1)
    more = trainer.pop("callbacks", [])
    options = {"max_epochs": 2, **trainer}
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    options |= dict.fromkeys(quiet, False)
    callbacks = [judged, *more]
    made = pl.Trainer(**options, accelerator="cpu", callbacks=callbacks, default_root_dir=tmp_path)
    with suppress(ValueError):
        made.fit(net, loader)
        return judged.said, None
    return judged.said, made.global_step


STEP = {"interval": "step"}


@pytest.mark.parametrize(
    ("config", "trainer", "most"),
    [
        (STEP, {}, 16),
        (STEP, {"accumulate_grad_batches": 3}, 6),
        (STEP, {"max_steps": 11}, 11),
        (STEP, {"max_epochs": -1, "max_steps": 5}, 5),
        (STEP, {"limit_train_batches": 3}, 6),
        (STEP | {"frequency": 2}, {}, 8),
        (STEP | {"frequency": 3}, {}, 4),
        (STEP | {"frequency": 3}, {"accumulate_grad_batches": 2}, 2),
        (STEP | {"frequency": 4}, {"accumulate_grad_batches": 3}, 2),
        (STEP | {"frequency": 3}, {"max_steps": 14}, 4),
        ({}, {"max_epochs": 4}, 4),
        ({"frequency": 2}, {"max_epochs": 5}, 2),
        ({}, {"max_epochs": 9, "max_steps": 25}, 3),
        ({}, {"max_epochs": -1, "max_steps": 25}, 3),
    ],
)
def test_the_steps_of_a_schedule_are_those_that_lightning_takes(
    tmp_path: Path, config: dict[str, Any], trainer: dict[str, Any], most: int
) -> None:
    assert taken(tmp_path, Net(most, config), **trainer) == ("", None)
    said, refused = taken(tmp_path, Net(most - 1, config), **trainer)
    assert refused is not None
    line = inspect.getsourcelines(Net.configure_optimizers)[1] + 2
    assert said.startswith(f"OneCycleLR ({Path(__file__).relative_to(Path.cwd())}:{line}) has ")
    assert f" has total_steps {most - 1}, and this training takes {most}" in said


@pytest.mark.parametrize(
    ("config", "end"),
    [
        (STEP, "takes 16 -> write total_steps=self.trainer.estimated_stepping_batches"),
        ({}, 'stepped by "interval": "epoch" -> write total_steps=self.trainer.max_epochs'),
        (STEP | {"frequency": 2}, "takes 8 -> write total_steps=8"),
    ],
)
def test_the_fix_is_what_counts_its_steps(tmp_path: Path, config: dict[str, Any], end: str) -> None:
    assert taken(tmp_path, Net(1, config))[0].endswith(end)


def test_nothing_is_said_where_no_end_is_known_or_the_model_steps_it(tmp_path: Path) -> None:
    assert taken(tmp_path, Steps(10, STEP)) == ("", None)
    said, refused = taken(tmp_path, Net(10, STEP), max_epochs=-1)
    assert (said, refused) == ("", 11)


@pytest.mark.parametrize("why", ["EarlyStopping", "should_stop", "stream"])
def test_a_training_that_may_end_before_gets_a_note(tmp_path: Path, why: str) -> None:
    stops = pl.callbacks.EarlyStopping("loss", check_on_train_epoch_end=False)
    judged = Judged(tmp_path, stream=1 if why == "stream" else None)
    net = (Stops if why == "should_stop" else Net)(10, STEP)
    said, refused = taken(
        tmp_path, net, judged, callbacks=[stops] if why == "EarlyStopping" else []
    )
    assert (said, refused) == ("", 11)
    (note,) = read_notes(judged.attempt)
    assert "has total_steps 10, and this training takes 16, unless it ends by itself" in note


def test_a_schedule_that_was_saved_has_to_stay_and_a_new_run_is_named(tmp_path: Path) -> None:
    said, _ = taken(tmp_path, Net(10, STEP), Judged(tmp_path, start=1))
    assert said.endswith(f"start a new run from these weights, init_from={tmp_path}")


def test_an_iterable_set_of_unknown_length_has_no_steps_but_those_of_max_steps() -> None:
    trainer: Any = SimpleNamespace(
        num_training_batches=float("inf"), accumulate_grad_batches=1, max_epochs=-1, max_steps=9
    )
    assert schedule_steps(trainer, "step", 1) == 9
    assert schedule_steps(trainer, "epoch", 1) is None
    trainer.max_epochs = 2
    assert schedule_steps(trainer, "step", 1) is None
