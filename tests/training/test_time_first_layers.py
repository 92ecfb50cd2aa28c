"""A recurrent layer without batch_first, told where a loss refuses its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.training.test_failing_frame import Data
from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")
FILE = "tests/training/test_time_first_layers.py"


class OfTime(Net):
    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 4, **given)

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch
        out, _ = self.lstm(x)
        return functional.cross_entropy(out[-1], y)


class Two(OfTime):
    def __init__(self) -> None:
        super().__init__()
        self.other = torch.nn.GRU(3, 4)


def batches(steps: int) -> Data:
    labels = torch.zeros(6, dtype=torch.long)
    return Data(DataLoader(TensorDataset(torch.ones(6, steps, 3), labels), batch_size=6))


def test_the_layer_that_takes_samples_for_time_steps_is_named(tmp_path: Path) -> None:
    line = OfTime.__init__.__code__.co_firstlineno + 2
    assert fit(tmp_path, OfTime(), data=batches(5)).fix == (
        "the logits have the shape [5, 4] and the labels [6]: self.lstm takes [time, batch,"
        " features], and is given [6, 5, ...]: write batch_first=True in its LSTM(...)"
        f" ({FILE}:{line}), and out[:, -1] for the last time step"
    )


@pytest.mark.parametrize("model", [Two(), OfTime(batch_first=True)])
def test_where_that_is_not_sure_the_shapes_alone_are_told(tmp_path: Path, model: Any) -> None:
    assert fit(tmp_path, model, data=batches(5)).fix == (
        "the logits have the shape [5, 4] and the labels [6]"
    )
