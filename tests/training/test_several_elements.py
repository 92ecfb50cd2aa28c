"""A metric of several elements that was logged: its name, its line and its cause are told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torchmetrics
from torch.nn import functional as F  # noqa: N812 - as users write it
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.training.private.lightning import pl
from hpc_train.training.rank_failure import failure_of
from tests.training.test_failure_words import Net

FILE = "tests/training/test_several_elements.py"
pytestmark = pytest.mark.filterwarnings("ignore")


class Classes(Net):
    def __init__(self, metric: Any, **given: Any) -> None:
        super().__init__()
        self.given = given
        self.layer = torch.nn.Linear(2, 3)
        self.acc = metric

    def training_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        return F.cross_entropy(self.layer(x), y)

    def validation_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        self.acc(self.layer(x), y)
        self.log("first", 1.0)
        self.log("val_acc", self.acc, **self.given)


class Collected(Classes):
    def validation_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        self.acc(self.layer(x), y)
        self.log_dict(self.acc)


def told(module: Any, tmp_path: Any) -> tuple[str, str]:
    quiet: dict[str, Any] = {"enable_progress_bar": False, "enable_checkpointing": False}
    logger = pl.loggers.CSVLogger(str(tmp_path))
    trainer = pl.Trainer(accelerator="cpu", max_epochs=1, logger=logger, **quiet)
    data = DataLoader(TensorDataset(torch.zeros(4, 2), torch.tensor([0, 1, 2, 1])), 4)
    with pytest.raises(ValueError, match="single element") as caught:
        trainer.fit(module, data, data)
    failure = failure_of(caught.value)
    return failure.where.partition(FILE)[2], failure.fix


def accuracy(average: Any) -> Any:
    return torchmetrics.Accuracy(task="multiclass", num_classes=3, average=average)


LOGS = f":{Classes.validation_step.__code__.co_firstlineno + 4}"
MADE = f"{FILE}:{Classes.__init__.__code__.co_firstlineno + 4}"
EACH = (
    'in place of that line for i, it in enumerate(self.acc.compute()): self.log(f"val_acc_{i}", it)'
    " in on_validation_epoch_end, and self.acc.reset() below it"
)


@pytest.mark.parametrize(
    ("average", "written"), [(None, "average=None"), ("none", 'average="none"')]
)
@pytest.mark.parametrize("given", [{"prog_bar": True}, {}, {"on_step": True, "on_epoch": True}])
def test_the_name_the_line_and_the_average_are_told(
    average: Any, written: str, given: dict[str, Any], tmp_path: Any
) -> None:
    where, fix = told(Classes(accuracy(average), **given), tmp_path)
    assert where == LOGS
    assert fix == (
        f"'val_acc', which validation_step logs, has 3 numbers: self.acc was made with {written}"
        f' ({MADE}): write average="macro" there for their mean, or {EACH}'
    )


def test_a_matrix_is_told_with_its_shape(tmp_path: Any) -> None:
    matrix = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)
    where, fix = told(Classes(matrix), tmp_path)
    assert where == LOGS
    assert fix.startswith("'val_acc', which validation_step logs, has the shape [3, 3]: self.acc")
    assert "average" not in fix


def test_one_of_a_collection_is_told_with_the_line_that_logs_all(tmp_path: Any) -> None:
    several = torchmetrics.MetricCollection({"a": accuracy("macro"), "b": accuracy(None)})
    where, fix = told(Collected(several), tmp_path)
    assert where == f":{Collected.validation_step.__code__.co_firstlineno + 3}"
    assert "'b', which validation_step logs, has 3 numbers: self.acc.b was made with average" in fix
