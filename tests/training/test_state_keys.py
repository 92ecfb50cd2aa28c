"""What tells two of Lightning's callbacks apart: as the refusal has it, and as Lightning does."""

from __future__ import annotations

from typing import Any

import pytest
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint

from hpc_train.config.fit.same_states import lightnings_key


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mode": "max"},
        {"mode": "min"},
        {"save_top_k": 2},
        {"every_n_epochs": 1},
        {"every_n_epochs": 2},
        {"every_n_train_steps": 5},
        {"every_n_train_steps": 0},
        {"monitor": "other"},
    ],
)
def test_lightning_tells_the_same_of_them_apart(given: dict[str, Any]) -> None:
    for kind in (ModelCheckpoint, EarlyStopping):
        if kind is EarlyStopping and not given.keys() <= {"mode", "monitor"}:
            continue
        both = [{"monitor": "a"}, {"monitor": "a", **given}]
        ours, other = (lightnings_key(kind.__name__, it) for it in both)
        theirs, others = (kind(**it).state_key for it in both)
        assert (ours == other) is (theirs == others)
