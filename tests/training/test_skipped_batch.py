"""A batch left out, and a list of data sets in a loader: told with line and what to write."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame

SAID = "Skipping the `training_step` by returning None in distributed training is not supported."
SET = TensorDataset(torch.zeros(4, 2), torch.zeros(4))
HERE = "tests/training/test_skipped_batch.py"


class Skips(pl.LightningModule):
    def training_step(self, batch: Any) -> Any:
        loss = batch.mean()
        if loss > 1:
            return None
        return loss


class Never(pl.LightningModule):
    def training_step(self, batch: Any) -> None:
        batch.mean()


def raised(model: Any) -> BaseException:
    """As Lightning's loop raises it."""
    with pytest.raises(RuntimeError) as caught:
        _fit(model)
    return caught.value


def _fit(model: Any) -> None:
    raise RuntimeError(SAID)


def test_the_return_is_told_with_what_to_write_for_it() -> None:
    error = raised(Skips())
    line = Skips.training_step.__code__.co_firstlineno + 3
    assert fix_of(error) == (
        f"{HERE}:{line} returns None: with several ranks no rank may leave a batch out: leave such"
        " samples out in the data set, or compute the loss of that batch as well and write"
        " `return loss * 0`"
    )


def test_a_step_that_never_gives_a_loss_leaves_no_batch_out() -> None:
    assert fix_of(raised(Never())) == ""


class Listed(pl.LightningDataModule):
    def setup(self, stage: str) -> None:
        self.train, self.val = SET, [Subset(SET, [0, 1]), Subset(SET, [2, 3])][1:]

    def val_dataloader(self) -> Any:
        return DataLoader(self.val)  # type: ignore[arg-type]


def looped(datamodule: Any, workers: int) -> BaseException:
    loader = datamodule.val_dataloader()
    given = DataLoader(loader.dataset, num_workers=workers)
    with pytest.raises(TypeError) as caught:
        list(given)
    return caught.value


@pytest.mark.parametrize("workers", [0, 1])
def test_a_list_of_sets_is_told_with_the_loader_that_has_it(workers: int) -> None:
    data = Listed()
    data.setup("fit")
    error = looped(data, workers)
    line = Listed.val_dataloader.__code__.co_firstlineno + 1
    assert fix_of(error) == (
        f"val_dataloader ({HERE}:{line}) gives the loader self.val, a list of 1 data set: take one"
        " of them, as self.val[0], or torch.utils.data.ConcatDataset(self.val)"
    )
    assert user_frame(error) == f"{__file__}:{line}"


def test_a_list_of_other_samples_is_no_list_of_sets() -> None:
    with pytest.raises(TypeError) as caught:
        list(DataLoader([object(), object()]))  # type: ignore[arg-type]
    assert "data set" not in fix_of(caught.value)
