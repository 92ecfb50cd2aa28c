"""What a model changes in place, told by its line where the text has it."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.failure_words import fix_of, said_by
from hpc_train.training.rank_failure import user_frame
from tests.training.test_failure_words import Net

FILE = "tests/training/test_changed_in_place.py"

SOLE = "is the sole change in place in the text"
OTHER = "where that is not it, Trainer(detect_anomaly=True) names the operation before it"


class Grows(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        return self.forward(batch).mean()

    def forward(self, x: Any) -> Any:
        count = 0
        count += 1
        x = torch.exp(self.layer(x))
        x += 1
        return x


class Called(Grows):
    def forward(self, x: Any) -> Any:
        y = torch.sigmoid(self.layer(x))
        y.mul_(2)
        return y


class Rows(Grows):
    def forward(self, x: Any) -> Any:
        y = self.layer(x).exp()
        y[:, 0] = 0
        return y


class Two(Grows):
    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        y = x.exp()
        y += 1
        z = y.relu()
        z *= 2
        return z


class TwoMade(Grows):
    def forward(self, x: Any) -> Any:
        y = torch.exp(self.layer(x))
        y -= 1
        z = torch.cos(y)
        z *= 2
        return z


class OfLayer(Grows):
    def __init__(self) -> None:
        super().__init__()
        self.act = torch.nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return self.act(torch.exp(self.layer(x)))


class Steps(Grows):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))  # type: ignore[assignment]

    def forward(self, x: Any) -> Any:
        return self.layer(x)

    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.forward(batch).mean()
        with torch.no_grad():
            for it in self.parameters():
                it.add_(1)
        self.manual_backward(loss)


def failed(kind: Any) -> tuple[str, str, str]:
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_checkpointing"), False)
    trainer = pl.Trainer(accelerator="cpu", enable_model_summary=False, max_steps=1, **quiet)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError) as caught:
        trainer.fit(kind(), torch.utils.data.DataLoader(torch.zeros(4, 2), batch_size=2))  # type: ignore[arg-type]
    return fix_of(caught.value), user_frame(caught.value), said_by(caught.value)


def at(kind: Any, more: int) -> str:
    return f"{FILE}:{kind.forward.__code__.co_firstlineno + more}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        (Grows, 4, "x += 1 ({}) changes it in place: write x = x + 1"),
        (Called, 2, "y.mul_(2) ({}) changes it in place: write y = y.mul(2)"),
        (TwoMade, 2, "y -= 1 ({}) changes it in place: write y = y - 1"),
        (
            Rows,
            2,
            f"y[:, 0] = 0 ({{}}) {SOLE}: write y = y.clone() in front of it; {OTHER}",
        ),
    ],
)
def test_the_one_line_that_changes_it_is_told(kind: Any, line: int, told: str) -> None:
    fix, where, said = failed(kind)
    assert fix == told.format(at(kind, line))
    assert where.endswith(at(kind, line))
    assert said.endswith("expected version 0 instead")


@pytest.mark.filterwarnings("ignore")
def test_of_several_all_are_told_and_of_a_layer_its_argument() -> None:
    fix, _, _ = failed(Two)
    assert fix == (
        f"y += 1 ({at(Two, 3)}) and z *= 2 ({at(Two, 5)}) change in place:"
        " Trainer(detect_anomaly=True) names the operation before it"
    )
    fix, _, _ = failed(OfLayer)
    assert fix.startswith("inplace=True of ReLU is the sole change in place in the text: write it")


@pytest.mark.filterwarnings("ignore")
def test_weights_that_were_changed_before_their_backward_are_no_line_of_forwards() -> None:
    assert "in place" not in failed(Steps)[0]
