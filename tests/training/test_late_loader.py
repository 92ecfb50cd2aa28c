"""The Trainer's train_dataloader before a fit has its loaders, told where a hook fails at it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.private.lightning import pl
from tests.training.test_failure_words import Net

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WHY = "trainer.train_dataloader is None in configure_optimizers, and there from on_train_start"
ALL = "trainer.estimated_stepping_batches"


class Cycled(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        for _ in range(1):
            n = len(self.trainer.train_dataloader)  # type: ignore[arg-type]
        cycle = OneCycleLR(opt, 0.1, epochs=2, steps_per_epoch=n)
        return [opt], [{"scheduler": cycle, "interval": "step"}]


class Cosine(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        trainer = self.trainer
        return [opt], [CosineAnnealingLR(opt, 2 * len(trainer.train_dataloader))]  # type: ignore[arg-type]


class OfTheSet(Net):
    def configure_optimizers(self) -> Any:
        print(self.trainer.train_dataloader.dataset)  # type: ignore[union-attr]


class OfAnother(Net):
    def configure_optimizers(self) -> Any:
        none: Any = None
        return len(none)


class Early(pl.Callback):
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.steps = len(trainer.train_dataloader)


def fix(module: Net, callback: Any = None) -> str:
    quiet = {"enable_progress_bar": False, "enable_checkpointing": False, "logger": False}
    trainer = pl.Trainer(accelerator="cpu", max_epochs=2, callbacks=callback, **quiet)  # type: ignore[arg-type]
    with pytest.raises((TypeError, AttributeError)) as caught:
        trainer.fit(module, [torch.ones(2, 4)])
    return fix_of(caught.value)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Cycled, f" on: write total_steps=self.{ALL} in place of epochs and steps_per_epoch"),
        (Cosine, f" on: write {ALL} // trainer.max_epochs for len(trainer.train_dataloader)"),
        (OfTheSet, " on"),
    ],
)
def test_it_is_told_why_and_what_to_write(kind: Any, told: str) -> None:
    assert fix(kind()).removeprefix("self.") == f"{WHY}{told}"


def test_a_hook_of_a_callback_writes_the_trainer_that_it_is_given() -> None:
    told = fix(Cosine(), callback=[Early()])
    assert told.startswith("trainer.train_dataloader is None in setup, and there from on_train_")
    assert "write trainer.estimated_stepping_batches // trainer.max_epochs for len(" in told


def test_another_none_is_not_told_as_the_loader() -> None:
    assert "train_dataloader" not in fix(OfAnother())
