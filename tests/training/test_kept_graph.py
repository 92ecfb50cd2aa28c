"""A state that is kept from one step for the next with its graph, from real, short fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")


class Keeps(Net):
    def __init__(self) -> None:
        super().__init__()
        self.state = torch.zeros(1)

    def training_step(self, batch: Any, index: int) -> Any:
        loss = (self.layer(batch) + self.state).pow(2).mean()
        self.state = self.kept(loss)
        return loss

    def kept(self, loss: Any) -> Any:
        return loss * 1


class KeepsParts(Keeps):
    def kept(self, loss: Any) -> Any:
        self.pair = (loss, None)
        return loss * 1


class KeepsPair(Net):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = torch.nn.LSTM(2, 1, batch_first=True)
        self.hidden: Any = None

    def training_step(self, batch: Any, index: int) -> Any:
        out, self.hidden = self.rnn(batch.unsqueeze(1), self.hidden)
        self.hidden = self.kept(self.hidden)
        return out.mean()

    def kept(self, pair: Any) -> Any:
        return pair


class DetachesPair(KeepsPair):
    def kept(self, pair: Any) -> Any:
        return tuple(it.detach() for it in pair)


class OwnBackward(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.layer(batch).pow(2).mean()
        loss.backward()
        return loss


def of_steps(model: Any, folder: Path) -> str:
    """What ends a fit of several steps."""
    batches: Any = torch.ones(6, 2)
    data = pl.LightningDataModule()
    data.train_dataloader = lambda: torch.utils.data.DataLoader(batches, 2)  # type: ignore[method-assign]
    return fit(folder, model, data=data).error


def line_of(text: str) -> str:
    lines = Path(__file__).read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if text in line)
    return f"{Path(__file__).relative_to(Path.cwd())}:{number}"


def test_what_keeps_a_graph_is_named_with_its_line(tmp_path: Path) -> None:
    said = f"self.state ({line_of('self.state = self.kept')})"
    rest = "the graph of the step that assigned it: what the next step reads of it needs .detach()"
    assert f"{said} has {rest}" in of_steps(Keeps(), tmp_path)
    pair = f"self.pair ({line_of('self.pair = (loss')})"
    error = of_steps(KeepsParts(), tmp_path)
    assert said in error
    assert pair in error
    assert f" have {rest}" in error


def test_a_graph_that_nothing_keeps_is_not_told_of(tmp_path: Path) -> None:
    error = of_steps(OwnBackward(), tmp_path)
    assert "a second time" in error
    assert "detach" not in error


def test_a_pair_that_keeps_a_graph_is_told_with_the_line_to_write(tmp_path: Path) -> None:
    line = line_of("out, self.hidden = ")
    own = "write self.hidden = tuple(it.detach() for it in self.hidden) below that line"
    kept = f"self.hidden ({line}) has the graph of the step that assigned it: {own}"
    assert of_steps(KeepsPair(), tmp_path).endswith(kept)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        of_steps(DetachesPair(), tmp_path)
