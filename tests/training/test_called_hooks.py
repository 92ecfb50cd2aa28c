"""A hook of an older Lightning, which wants what Lightning gives seldom, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_only

from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")


class Older(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, loader_idx): ...


class Wants(pl.Callback):
    def on_validation_batch_end(  # type: ignore[override]
        self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx
    ): ...


class Wrapped(pl.Callback):
    @rank_zero_only
    def on_validation_batch_end(  # type: ignore[override]
        self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx
    ): ...


class Validated(Net):
    def validation_step(self, batch: Any, batch_idx: int) -> None: ...

    def val_dataloader(self) -> Any:
        return [1]


@pytest.mark.parametrize("callback", [Wants, Wrapped])
def test_what_lightning_gives_seldom_is_told_with_its_default(
    tmp_path: Path, callback: type[pl.Callback]
) -> None:
    """It was told that Lightning calls it with dataloader_idx, which is what it had not done."""
    told = fit(tmp_path, Validated(), callback())
    assert told.fix == (
        "write dataloader_idx=0 in its def, as Lightning's own has it: it is not always given"
    )
    assert told.where.startswith(f"{__file__}:")


def test_what_it_never_gives_is_told_with_what_it_gives(tmp_path: Path) -> None:
    told = fit(tmp_path, Net(), Older())
    given = "trainer, pl_module, outputs, batch, batch_idx"
    assert told.fix == f"Lightning calls it with {given}"
