"""A property of Lightning's that an `__init__` assigns: what to write in its place."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import pytorch_lightning as pl

from hpc_train.training.failures.failure_words import fix_of


class Kept(pl.LightningModule):
    def __init__(self, args: Any) -> None:
        super().__init__()
        self.hparams = args  # type: ignore[misc]


class Placed(pl.LightningModule):
    def __init__(self, _args: Any) -> None:
        super().__init__()
        self.global_step = 3  # type: ignore[misc]


class Own:
    def __init__(self, args: Any) -> None:
        self.hparams = args  # type: ignore[misc]

    @property
    def hparams(self) -> Any:
        return 1


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        (Kept, "write self.save_hyperparameters(args) in its place, which fills self.hparams"),
        (Placed, "another name for what is kept there, as in self.my_global_step"),
        (Own, ""),
    ],
)
def test_what_to_write_is_told_with_the_argument(kind: Any, fix: str) -> None:
    with pytest.raises(AttributeError) as caught:
        kind(Namespace(lr=0.1))
    assert fix_of(caught.value) == fix
