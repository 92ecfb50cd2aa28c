"""What a class asks a Trainer for as one object, though it has it in a list."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.trainer_lists import trainer_lists
from hpc_train.config.python_text.class_kind import locate


def notes(folder: Path, kind: str, body: str) -> list[str]:
    head = f"import pytorch_lightning as pl\n\nclass It(pl.{kind}):\n"
    (folder / "own_lists.py").write_text(head + body)
    path = [str(folder), *sys.path]
    found = locate("own_lists.It", path)
    assert found is not None
    return [*trainer_lists(kind, "own_lists.It", found, path)]


HOOK = "    def on_train_epoch_end(self, trainer, pl_module):\n"


def test_the_optimizer_of_a_trainer_is_noted_with_its_list(tmp_path: Path) -> None:
    body = f"{HOOK}        if pl_module:\n            print(trainer.optimizer.param_groups)\n"
    (said,) = notes(tmp_path, "Callback", body)
    assert said == (
        "own_lists.It asks trainer.optimizer (line 6), which a Trainer has not: write"
        " trainer.optimizers[0]"
    )
    body = "    def training_step(self, batch, i):\n        return self.trainer.lr_scheduler\n"
    (said,) = notes(tmp_path, "LightningModule", body)
    assert said == (
        "own_lists.It asks self.trainer.lr_scheduler (line 5), which a Trainer has not: write"
        " self.trainer.lr_scheduler_configs[0].scheduler"
    )


@pytest.mark.parametrize(
    "body",
    [
        f"{HOOK}        trainer.optimizers[0].step()\n",
        f"{HOOK}        trainer.optimizer = 1\n        print(trainer.optimizer)\n",
        f"{HOOK}        trainer = 1\n        print(trainer.optimizer)\n",
        f"{HOOK}        print(getattr(trainer, 'a', 0) or trainer.optimizer)\n",
        "    def helper(self, trainer):\n        print(trainer.optimizer)\n",
        f"{HOOK}        print(self.trainer.optimizer, pl_module.optimizer)\n",
    ],
)
def test_of_what_may_be_another_trainer_or_is_set_nothing_is_said(
    tmp_path: Path, body: str
) -> None:
    assert notes(tmp_path, "Callback", body) == []
