"""Labels that are [batch, 1], or no Long: told once, for each step and for the data."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as users write it
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net

FILE = "tests/training/test_class_numbers.py"
OUT, Y = torch.zeros(4, 3), torch.tensor([0, 2, 1, 1])


class Columns(Net):
    """With a metric first in its validation, and the loss alone in training."""

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)
        made: dict[str, Any] = {"task": "multiclass", "num_classes": 3} | given
        self.acc = torchmetrics.Accuracy(**made)

    def training_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        return F.cross_entropy(self.layer(x), y)

    def validation_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        out = self.layer(x)
        self.acc(out, y)
        F.cross_entropy(out, y)


class Columned(pl.LightningDataModule):
    def __init__(self, y: torch.Tensor) -> None:
        super().__init__()
        self.y = y

    def setup(self, stage: str) -> None:
        x, y = torch.zeros(4, 2), self.y
        self.both = TensorDataset(x, y)

    def train_dataloader(self) -> Any:
        return DataLoader(self.both, batch_size=4)

    val_dataloader = train_dataloader


class Samples(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2), torch.tensor([float(index // 2)])


def line_of(method: Any, more: int) -> int:
    return int(method.__code__.co_firstlineno) + more


def fix(call: Any) -> str:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    return fix_of(caught.value)


def fitted(model: Any, data: Any, validates: int = 2) -> str:
    names = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    quiet: dict[str, Any] = dict.fromkeys(names, False)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", num_sanity_val_steps=validates, **quiet)
    return fix(lambda: trainer.fit(model, data))


TRAINS = f"{FILE}:{line_of(Columns.training_step, 1)}"
VALIDATES = f"{FILE}:{line_of(Columns.validation_step, 1)}"
MADE = f"{FILE}:{line_of(Columned.setup, 2)}"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("y", "kind", "change"),
    [
        (Y.float()[:, None], "float32 [4, 1]", ".squeeze(1).long()"),
        (Y[:, None], "int64 [4, 1]", ".squeeze(1)"),
        (Y.int()[:, None], "int32 [4, 1]", ".squeeze(1).long()"),
    ],
)
def test_a_metrics_failure_is_told_with_all_that_the_labels_need(
    y: torch.Tensor, kind: str, change: str
) -> None:
    assert fitted(Columns(), Columned(y)) == (
        f"y is {kind} with the whole numbers 0 to 2, and class numbers are int64 [4]:"
        f" write y = y{change} below x, y = batch in {VALIDATES} and {TRAINS},"
        f" or once in the data: y = y{change} in front of {MADE}"
    )


def test_a_losss_failure_is_told_alike() -> None:
    told = fitted(Columns(), Columned(Y.float()[:, None]), validates=0)
    assert f"write y = y.squeeze(1).long() below x, y = batch in {TRAINS} and {VALIDATES}" in told


def test_a_metric_that_takes_no_float_is_told_alike() -> None:
    def step(batch: Any) -> Any:
        x, y = batch
        return torchmetrics.functional.auroc(x, y, task="multiclass", num_classes=3)

    told = fix(lambda: step((OUT.softmax(1), Y.float())))
    place = f"{FILE}:{line_of(step, 1)}"
    assert told.endswith(f"write y = y.long() below x, y = batch in {place}")


def test_a_data_set_of_the_users_is_named() -> None:
    loader = DataLoader(Samples(), batch_size=4)
    told = fitted(Columns(), loader, validates=0)
    source = f"{FILE}:{line_of(Samples.__getitem__, 0)}"
    assert told.endswith(
        f"or once in the data set: .squeeze(0).long() of the label in {Samples.__module__}.Samples"
        f".__getitem__ ({source})"
    )


def test_a_loop_of_a_script_is_told_its_line() -> None:
    loader = DataLoader(TensorDataset(OUT, Y.float()[:, None]), batch_size=4)

    def train() -> None:
        for x, y in loader:
            F.cross_entropy(x, y)

    told = fix(train)
    assert "write y = y.squeeze(1).long() below for " in told
    assert told.endswith(f" in loader in {FILE}:{line_of(train, 1)}")


class Segments(Columns):
    def __init__(self, casts: bool = False) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 1)  # type: ignore[assignment]
        self.casts = casts

    def training_step(self, batch: Any, index: int) -> Any:
        images, masks = batch
        if self.casts:
            return F.cross_entropy(self.layer(images), masks.long())
        return F.cross_entropy(self.layer(images), masks)

    def validation_step(self, batch: Any, index: int) -> Any:
        images, masks = batch
        F.cross_entropy(self.layer(images), masks)


MASKS = torch.arange(16).reshape(1, 1, 4, 4).remainder(4).expand(2, 1, 4, 4)
ONE_HOT = F.one_hot(MASKS[:, 0], 4).movedim(-1, 1)


@pytest.mark.parametrize(
    ("masks", "casts", "kind", "change"),
    [
        (MASKS, False, "int64 [2, 1, 4, 4]", ".squeeze(1)"),
        (MASKS.float(), False, "float32 [2, 1, 4, 4]", ".squeeze(1).long()"),
        (MASKS.float(), True, "float32 [2, 1, 4, 4]", ".squeeze(1).long()"),
        (MASKS.movedim(1, -1), False, "int64 [2, 4, 4, 1]", ".squeeze(-1)"),
        (ONE_HOT, False, "int64 [2, 4, 4, 4]", ".argmax(1)"),
    ],
)
def test_masks_with_a_channel_are_told_with_what_takes_it_out(
    masks: torch.Tensor, casts: bool, kind: str, change: str
) -> None:
    data = TensorDataset(torch.zeros(2, 3, 4, 4), masks)
    loader = DataLoader(data, batch_size=2)
    step = line_of(Segments.training_step, 1)
    told = fitted(Segments(casts), loader, validates=0)
    most = 1 if change == ".argmax(1)" else 3
    assert told.startswith(
        f"masks is {kind} with the whole numbers 0 to {most}, and class numbers are int64"
        f" [2, 4, 4]: write masks = masks{change} below images, masks = batch in {FILE}:{step} and"
    )
    assert f"{FILE}:{line_of(Segments.validation_step, 1)}" in told


def test_masks_of_another_size_are_no_class_numbers_yet() -> None:
    def step(batch: Any) -> Any:
        x, y = batch
        return F.cross_entropy(x, y)

    out = torch.zeros(2, 4, 4, 4)
    assert "class numbers" not in fix(lambda: step((out, torch.zeros(2, 3, 4, 4).long())))
    assert "class numbers" not in fix(lambda: step((out, torch.zeros(2, 2, 2).long())))
    assert "class numbers" not in fix(lambda: step((out, MASKS.float() / 255)))


def test_what_may_be_no_class_number_is_told_otherwise() -> None:
    assert "whole numbers" not in fitted(Columns(), Columned(Y[:, None] + 0.5))
    assert "whole numbers" not in fitted(
        Columns(task="multilabel", num_labels=3), Columned(Y[:, None])
    )


def test_a_binary_metric_keeps_its_own_fix() -> None:
    metric, out, y = torchmetrics.Accuracy(task="binary"), torch.zeros(4), Y[:, None] % 2
    assert fix(lambda: metric(out, y)) == "write metric(out, y.squeeze(1))"


def test_without_a_line_that_names_the_labels_the_call_is_told() -> None:
    def loss(out: torch.Tensor, y: torch.Tensor) -> Any:
        return torchmetrics.functional.accuracy(out, y, task="multiclass", num_classes=3)

    assert ".squeeze(1)" in fix(lambda: loss(OUT, Y[:, None]))
