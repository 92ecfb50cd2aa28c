"""An argument by a name that a call does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.failure_words import fix_of

NET: Any = pl.LightningModule()
LINEAR: Any = torch.nn.Linear
TRAINER: Any = pl.Trainer
ADAM: Any = torch.optim.Adam


def rated(rate: float, steps: Any = 1) -> None: ...


def handed(**more: Any) -> None:
    rated(**more)


def open_to_all(**more: Any) -> None:
    rated(1.0, **more)


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: NET.log("a", 1.0, progbar=True), "did you mean 'prog_bar'?"),
        (lambda: LINEAR(8, out_feature=3), "did you mean 'out_features' or 'in_features'?"),
        (lambda: TRAINER(max_epoch=3), "did you mean 'max_epochs' or 'min_epochs'?"),
        (
            lambda: TRAINER(max_epochs=3, gpus=[1], progress_bar_refresh_rate=0),
            (
                "gpus: leave it out, and submit the script with --gpus N;"
                " progress_bar_refresh_rate: write enable_progress_bar=False"
            ),
        ),
        (
            lambda: TRAINER(distributed_backend="ddp"),
            'distributed_backend: write strategy="ddp"',
        ),
        (lambda: handed(rate=1, gamma=3), "it takes rate, steps"),
        (lambda: handed(rates=3), "did you mean 'rate'?"),
        (lambda: open_to_all(stepz=3), "did you mean 'steps'?"),
    ],
)
def test_the_name_that_was_meant_is_told(call: Callable[[], Any], fix: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert fix_of(caught.value) == fix


def test_what_an_optimizer_of_torchs_takes_is_told() -> None:
    with pytest.raises(TypeError) as caught:
        ADAM([], momentum=0.9)
    assert fix_of(caught.value).startswith("it takes params, lr, betas, eps, weight_decay, ")
