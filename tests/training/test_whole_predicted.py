"""A prediction of a model without a predict_step, whose forward gets the labels as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hpc_train.training.rank_failure import RankFailure, failure_of
from tests.training.test_failure_words import Net

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.zeros(4, 2)


class Plain(Net):
    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Flat(Net):
    def forward(self, x: Any) -> Any:
        return self.layer(x.flatten(1))


class Own(Plain):
    def predict_step(self, batch: Any, index: int) -> Any:
        return self(batch)


class Named(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return {"image": X[index], "label": 1}


def predicted(folder: Path, model: Any, data: Any) -> RankFailure:
    trainer = pl.Trainer(
        accelerator="cpu", default_root_dir=str(folder), logger=False, enable_progress_bar=False
    )
    with pytest.raises((TypeError, AttributeError)) as caught:
        trainer.predict(model, DataLoader(data, batch_size=2))
    return failure_of(caught.value)


HAS = "has no predict_step, and Lightning's gives forward the whole batch, a"
STEP = "write def predict_step(self, batch, batch_idx):"


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        (Plain, TensorDataset(X, X), f"list of 2: {STEP} x, y = batch; return self(x)"),
        (Plain, TensorDataset(X), f"list of 1: {STEP} (x,) = batch; return self(x)"),
        (Flat, TensorDataset(X, X, X), f"list of 3: {STEP} x, *_ = batch; return self(x)"),
        (Plain, Named(), f'dict of 2: {STEP} return self(batch["image"])'),
    ],
)
def test_the_step_to_write_is_told_at_the_models_class(
    tmp_path: Path, kind: Any, data: Any, told: str
) -> None:
    failure = predicted(tmp_path, kind(), data)
    assert failure.fix == f"{__name__}.{kind.__name__} {HAS} {told}"
    assert failure.where == f"{__file__}:{kind.forward.__code__.co_firstlineno - 1}"


def test_of_a_step_of_its_own_its_line_is_told(tmp_path: Path) -> None:
    failure = predicted(tmp_path, Own(), TensorDataset(X, X))
    assert HAS not in failure.error
    assert failure.where == f"{__file__}:{Own.predict_step.__code__.co_firstlineno + 1}"
