"""Class numbers that are no Long, told with each line that takes them, and where the data is."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as users write it
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net

FILE = "tests/training/test_float_labels.py"
OUT, Y = torch.zeros(4, 3), torch.tensor([0.0, 2.0, 1.0, 1.0])


class Classes(Net):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def training_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        return F.cross_entropy(self.layer(x), y)

    def validation_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        F.cross_entropy(self.layer(x), y)


class Tensors(pl.LightningDataModule):
    def setup(self, stage: str) -> None:
        x, y = torch.zeros(8, 2), Y.repeat(2)
        self.train = TensorDataset(x[:4], y[:4])
        self.held = Subset(TensorDataset(x[4:], y[4:]), [0, 1, 2])

    def train_dataloader(self) -> Any:
        return DataLoader(self.train, batch_size=4)

    def val_dataloader(self) -> Any:
        return [DataLoader(self.held, batch_size=4)]


class Pairs(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2), float(index // 2)


def line_of(method: Any, more: int) -> int:
    return int(method.__code__.co_firstlineno) + more


def fix(call: Any) -> str:
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        call()
    return fix_of(caught.value)


def fitted(model: Any, data: Any, **given: Any) -> str:
    quiet: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_model_summary"), False
    )
    quiet["enable_checkpointing"] = False
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", **quiet, **given)
    return fix(lambda: trainer.fit(model, data))


TRAINS, VALIDATES = line_of(Classes.training_step, 2), line_of(Classes.validation_step, 2)


@pytest.mark.filterwarnings("ignore")
def test_each_step_that_takes_them_is_named_and_the_line_of_the_data() -> None:
    once = f"or once in the data: y = y.long() in front of {FILE}:{line_of(Tensors.setup, 2)}"
    assert fitted(Classes(), Tensors()) == (
        "y is float32 [3] with the whole numbers 0 to 2: write y.long() in"
        f" {FILE}:{VALIDATES} and {FILE}:{TRAINS}, {once}"
    )
    assert fitted(Classes(), Tensors(), num_sanity_val_steps=0) == (
        "y is float32 [4] with the whole numbers 0 to 2: write y.long() in"
        f" {FILE}:{TRAINS} and {FILE}:{VALIDATES}, {once}"
    )


@pytest.mark.filterwarnings("ignore")
def test_a_data_set_of_the_users_is_named_with_its_method() -> None:
    told = fitted(Classes(), DataLoader(Pairs(), batch_size=4))
    named = "tests.training.test_float_labels.Pairs.__getitem__"
    of = f"{named} ({FILE}:{line_of(Pairs.__getitem__, 0)})"
    assert told.startswith("y is float64 [4] with the whole numbers 0 to 1: write y.long() in ")
    assert told.endswith(f"once in the data set: int(...) or .long() of the label in {of}")


def test_other_steps_that_take_other_labels_are_left_out() -> None:
    class Other(Classes):
        def validation_step(self, batch: Any, index: int) -> Any:
            x, y = batch[0], batch[1].long()
            F.cross_entropy(self.layer(x), y)

    told = fix(lambda: Other().training_step((torch.zeros(4, 2), Y), 0))
    assert told.endswith(f"write y.long() in {FILE}:{TRAINS}")


def test_labels_are_told_as_they_are_written() -> None:
    batch = {"y": Y.bool()}
    has, loss = "with the whole numbers 0 to 2: write", nn.CrossEntropyLoss()
    told = fix(lambda: F.nll_loss(OUT, target=Y.int()))
    assert told.startswith(f"Y.int() is int32 [4] {has} Y.int().long() in {FILE}:")
    told = fix(lambda: loss(OUT, Y * 1))
    assert told.startswith(f"Y * 1 is float32 [4] {has} (Y * 1).long() in")
    assert (
        "batch['y'] is bool [4] with the whole numbers 0 to 1: write batch['y'].long() in"
        in fix(lambda: loss(OUT, batch["y"]))
    )


def test_of_what_is_no_class_number_nothing_is_said() -> None:
    assert not fix(lambda: F.cross_entropy(OUT, Y / 2))
    assert not fix(lambda: F.cross_entropy(OUT, Y * float("nan")))


def test_of_a_loss_of_the_users_own_the_line_in_it_is_told() -> None:
    def loss_of(out: torch.Tensor, wanted: torch.Tensor) -> Any:
        return F.cross_entropy(out, wanted)

    told = fix(lambda: loss_of(OUT, Y))
    assert told.endswith(f"write wanted.long() in {FILE}:{line_of(loss_of, 1)}")
