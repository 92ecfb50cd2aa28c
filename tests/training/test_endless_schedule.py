"""A OneCycleLR without its number of steps, told with what to write and what to return."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net

TOTAL = "write total_steps=self.trainer.estimated_stepping_batches"


def fix(call: Any) -> str:
    with pytest.raises(ValueError, match="total_steps") as caught:
        call()
    return fix_of(caught.value)


class Lists(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1)
        return [opt], [sched]


class Dicts(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        cycle = OneCycleLR(opt, 0.1, epochs=3)
        return {"optimizer": opt, "lr_scheduler": cycle}


class InnerDicts(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        cycle = OneCycleLR(opt, 0.1)
        return {"lr_scheduler": {"scheduler": cycle, "interval": "epoch"}, "optimizer": opt}


class Stepped(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        cycle = {"scheduler": OneCycleLR(opt, 0.1), "interval": "step"}
        return {"optimizer": opt, "lr_scheduler": cycle}


class Named(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return dict(optimizer=opt, lr_scheduler=OneCycleLR(opt, 0.1))  # noqa: C408 - as users do


class Inline(Net):
    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), lr=0.1)
        return [opt], [OneCycleLR(opt, max_lr=0.1, steps_per_epoch=4)]


class ByHand(Lists):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


INLINE = f'{{"scheduler": OneCycleLR(opt, max_lr=0.1, {TOTAL[6:]}), "interval": "step"}}'
IN_DICT = '{"scheduler": cycle, "interval": "step"}'


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Lists, ', and return [opt], [{"scheduler": sched, "interval": "step"}]'),
        (
            Dicts,
            f' in place of epochs=3, and return {{"optimizer": opt, "lr_scheduler": {IN_DICT}}}',
        ),
        (InnerDicts, f', and return {{"lr_scheduler": {IN_DICT}, "optimizer": opt}}'),
        (Stepped, ""),
        (Named, ', and "interval": "step" beside "scheduler" in what configure_optimizers returns'),
        (Inline, f" in place of steps_per_epoch=4, and return [opt], [{INLINE}]"),
        (ByHand, ""),
    ],
)
def test_the_total_is_told_with_the_return_that_steps_it_each_step(kind: Any, told: str) -> None:
    assert fix(lambda: kind().configure_optimizers()) == f"{TOTAL}{told}"


def test_outside_of_a_lightning_module_the_steps_are_counted_by_hand() -> None:
    opt = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    assert fix(lambda: OneCycleLR(opt, 0.1)) == (
        "give total_steps, how often its step() is called: epochs * len(loader) of once a batch"
    )
