"""What the values at a failed line tell, from real, short fits."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)

from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import RankFailure, failure_of
from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")


def place(method: Any, line: int = 0) -> str:
    return f"{method.__code__.co_filename}:{method.__code__.co_firstlineno + line}"


class Detaches(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.layer(batch).mean()
        return loss.detach()


class ByHand(Net):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: torch.Tensor, index: int) -> None:  # type: ignore[override]
        self.manual_backward(self.layer(batch).mean().detach())


class Frozen(Net):
    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)


class Saved(Net):
    def __init__(self, lr: float = 0.1, keep: bool = True) -> None:
        super().__init__()
        if keep:
            self.save_hyperparameters()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.lr)  # type: ignore[arg-type]


class Copies(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> Any:
        loss = self.layer(batch).mean()
        return torch.tensor(loss)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class InForward(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.layer(x)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        return self(batch).mean()


class DetachesInForward(InForward):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.layer(x).detach()
        return out.relu()


class Named(Net):
    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x = batch["x"]
        return self.layer(x).mean()


class Texts(Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(index + 1)

    def __len__(self) -> int:
        return 4


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Any:
        return iter([torch.ones(2)])


class Data(pl.LightningDataModule):
    def __init__(self, loader: Any) -> None:
        super().__init__()
        self.loader = loader

    def train_dataloader(self) -> Any:
        return self.loader


def test_a_loss_without_a_gradient_is_placed_at_the_step_with_what_took_it(tmp_path: Path) -> None:
    told = fit(tmp_path, Detaches())
    assert told.where == place(Detaches.training_step)
    line = Detaches.training_step.__code__.co_firstlineno + 2
    assert told.fix == (
        f"the loss has no gradient: look at line {line} (.detach()): no such call between self(x)"
        " and return loss"
    )
    told = fit(tmp_path, Copies())
    assert told.where == place(Copies.training_step, 2)
    assert told.fix == "training_step gives a loss without a gradient: write return loss"
    told = fit(tmp_path, InForward())
    assert told.where == place(InForward.forward, 1)
    assert told.fix == "forward computes what it gives under torch.no_grad(): leave that out of it"
    told = fit(tmp_path, DetachesInForward())
    assert told.where == place(DetachesInForward.forward, 1)
    assert ": look at forward, tests/training/test_failing_frame.py:" in told.fix
    told = fit(tmp_path, ByHand())
    assert told.where == place(ByHand.training_step, 1)
    told = fit(tmp_path, Frozen())
    assert "all parameters of Frozen are frozen: requires_grad_(True)" in told.fix
    assert told.where == place(Net.training_step)


def test_a_name_that_hparams_has_is_told_to_be_there(tmp_path: Path) -> None:
    told = fit(tmp_path, Saved())
    assert told.fix == "write self.hparams.lr, or self.lr = lr in __init__"
    assert fit(tmp_path, Saved(keep=False)).fix.endswith("takes lr: write self.lr = lr there")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "batch is a list of 1 Tensor: write batch[0]"),
        (2, "batch is a list of 2 Tensors: write x, y = batch"),
        (3, "batch is a list of 3 Tensors: write batch[0]"),
    ],
)
def test_a_batch_that_is_a_list_is_told(tmp_path: Path, count: int, said: str) -> None:
    batches = DataLoader(TensorDataset(*[torch.ones(4, 2)] * count), batch_size=4)
    told = fit(tmp_path, Named(), data=Data(batches))
    assert told.fix == said
    assert told.where.startswith(f"{__file__}:")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_set_whose_samples_differ_is_named(tmp_path: Path, workers: int) -> None:
    loader = DataLoader(Subset(Texts(), [0, 1]), batch_size=2, num_workers=workers)
    told = fit(tmp_path, Net(), data=Data(loader))
    assert told.where == place(Texts.__getitem__)
    assert f"{__name__}.Texts.__getitem__ gives samples that differ in size" in told.fix


class Pictures(Texts):
    """Gives what torch makes no batch of, as an image of PIL."""

    def __getitem__(self, index: int) -> Any:
        return object(), index


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("held", [Pictures(), Subset(Pictures(), [0, 1])])
def test_a_set_with_samples_of_another_kind_is_the_place(workers: int, held: Any) -> None:
    with pytest.raises(TypeError, match="batch must contain tensors") as caught:
        list(DataLoader(held, batch_size=2, num_workers=workers))
    told = failure_of(caught.value)
    assert told.where == place(Pictures.__getitem__)
    assert "a part of one is of the type object" in cause_and_fix(told)[0]


def test_samples_that_a_collate_of_the_users_own_refuses_are_placed_there() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.stack([torch.ones(1), torch.ones(2)])
    assert failure_of(caught.value).fix == ""


def failed(make: Any) -> RankFailure:
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    return failure_of(caught.value)


def cause_and_fix(failure: RankFailure) -> tuple[str, str]:
    logs = ReadLogs()
    for number, line in enumerate(failure.traceback.splitlines()):
        logs.feed(line, "rank-0.log", number)
    (found,) = (item for item in logs.findings() if item.is_known)
    return found.cause, found.fix


def test_loaders_and_splits_with_arguments_that_do_not_fit_are_told_what_to_write() -> None:
    whole = TensorDataset(torch.ones(256, 2))
    told = failed(lambda: DataLoader(Stream(), shuffle=True))
    assert cause_and_fix(told)[1].startswith("leave shuffle=True out, and shuffle in __iter__")
    sampler = torch.utils.data.RandomSampler(whole)
    told = failed(lambda: DataLoader(whole, shuffle=True, sampler=sampler))
    assert cause_and_fix(told)[1].startswith("leave shuffle=True out: the sampler decides")
    told = failed(lambda: DataLoader(Stream(), sampler=sampler))  # type: ignore[arg-type]
    assert cause_and_fix(told)[1].startswith("leave the sampler out")
    told = failed(lambda: random_split(whole, [200, 64]))
    assert told.fix.startswith("the lengths sum up to 264, and the set has 256 samples: write")
    told = failed(lambda: random_split(whole, [0.8, 0.4]))
    assert told.fix == "the fractions sum up to 1.2, and have to sum up to 1"


ROWS = ["f0,f1\n", "1,2\n", "3,much\n"]


def in_one(skip: int) -> object:
    return [[float(v) for v in row] for row in csv.reader(ROWS[skip:])]


def by_a_name(skip: int) -> object:
    reader = csv.reader(ROWS[skip:])
    return [float(row[1]) for row in reader]


@pytest.mark.parametrize("read", [in_one, by_a_name])
def test_a_header_is_told_apart_from_a_text_among_numbers(read: Callable[[int], object]) -> None:
    with pytest.raises(ValueError, match="could not convert") as caught:
        read(0)
    told = "stands in the first line of the file, as a rule its header: skip it: reader = csv."
    assert told in fix_of(caught.value)
    with pytest.raises(ValueError, match="could not convert") as caught:
        read(1)
    assert fix_of(caught.value).startswith("'much' is no number: leave such a column or line out")


def test_an_empty_text_is_told_as_before() -> None:
    with pytest.raises(ValueError, match="could not convert") as caught:
        float("")
    assert fix_of(caught.value).startswith("an empty text")
