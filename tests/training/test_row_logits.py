"""Logits of each step of a sequence beside one label a sample: which line to write, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hpc_train.training.failures.failure_words import fix_of

FILE = "tests/training/test_row_logits.py"
IDS, SHORT, LABELS = torch.zeros(5, 7).long(), torch.zeros(5, 1).long(), torch.ones(5).long()
SHAPES = "the logits have the shape [5, 7, 2], 7 rows a sample, and the labels [5], one a sample"


class Tagger(nn.Module):
    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.lstm = nn.LSTM(4, 3, batch_first=batch_first)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(3, 2)

    def forward(self, ids: Any) -> Any:
        out, _ = self.lstm(self.embedding(ids))
        return self.head(out)


class Named(Tagger):
    def forward(self, x: Any) -> Any:
        x = self.embedding(x)
        x, _ = self.lstm(x)
        x = self.head(self.drop(x))
        return x  # noqa: RET504 - as it is written


class Stacked(Tagger):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))  # type: ignore[assignment]


class Whole(Tagger):
    def forward(self, ids: Any) -> Any:
        out, _ = self.lstm(self.embedding(ids))
        return self.head(out) / 2


class Mixing(Tagger):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(7))  # type: ignore[assignment]


class Early(Tagger):
    def forward(self, ids: Any) -> Any:
        out, _ = self.lstm(self.embedding(ids))
        if ids is None:
            return out
        return self.head(out)


class Convolved(Tagger):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 2, 1)

    def forward(self, ids: Any) -> Any:
        return self.conv(self.embedding(ids).transpose(1, 2))


def last_line(kind: type[nn.Module], more: int) -> str:
    return f"{FILE}:{kind.forward.__code__.co_firstlineno + more}"


def of_steps(model: nn.Module) -> Any:
    return functional.cross_entropy(model(IDS), LABELS)


def told(compute: Callable[[], Any]) -> str:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        compute()
    return fix_of(caught.value)


@pytest.mark.parametrize(
    ("model", "line", "written"),
    [
        (Tagger(), 2, "self.head(out[:, -1]), of the last row, or self.head(out.mean(1)), of"),
        (Stacked(), 2, "self.head(out[:, -1]), of the last row, or self.head(out.mean(1)), of"),
        (Named(), 3, "self.head(self.drop(x)[:, -1]), of the last row, or self.head(self.drop(x)."),
        (Whole(), 2, "(self.head(out) / 2)[:, -1], of the last row, or (self.head(out) / 2).mean"),
        (Mixing(), 2, "self.head(out)[:, -1], of the last row, or self.head(out).mean(1), of"),
    ],
)
def test_logits_of_each_step_are_told_with_the_line_of_forward(
    model: nn.Module, line: int, written: str
) -> None:
    kind = Tagger if "forward" not in vars(type(model)) else type(model)
    at = f"in {last_line(kind, line)} write "
    assert told(lambda: of_steps(model)).startswith(f"{SHAPES}: {at}{written}")


def test_what_is_told_runs_through() -> None:
    model = Tagger()
    out, _ = model.lstm(model.embedding(IDS))
    functional.cross_entropy(model.head(out[:, -1]), LABELS)
    functional.cross_entropy(model.head(out.mean(1)), LABELS)


def test_where_no_line_of_forward_is_sure_the_loss_has_what_to_write() -> None:
    model, loss = Early(), nn.CrossEntropyLoss()
    either = "write model(IDS)[:, -1], of the last row, or model(IDS).mean(1), of their mean"
    assert told(lambda: loss(model(IDS), LABELS)) == f"{SHAPES}: {either}"

    def of_named() -> Any:
        logits = functional.log_softmax(model(IDS), -1)
        return functional.nll_loss(logits, target=LABELS)

    either = "write logits[:, -1], of the last row, or logits.mean(1), of their mean"
    assert told(of_named) == f"{SHAPES}: {either}"
    assert told(lambda: functional.cross_entropy(*[model(IDS), LABELS])) == f"{SHAPES}: {either}"


def test_rows_at_another_place_are_told_with_theirs() -> None:
    model = Convolved()
    assert told(lambda: of_steps(model)) == (
        "the logits have the shape [5, 2, 7], 7 rows a sample, and the labels [5], one a sample:"
        f" in {last_line(Convolved, 1)} write self.conv(self.embedding(ids).transpose(1, 2))"
        "[:, :, -1], of the last row, or self.conv(self.embedding(ids).transpose(1, 2)).mean(2),"
        " of their mean"
    )
    first = Tagger(batch_first=False)
    said = told(lambda: functional.cross_entropy(first(IDS.T), LABELS))
    assert said.endswith(
        "write self.head(out[-1]), of the last row, or self.head(out.mean(0)), of their mean"
    )


def test_one_row_and_a_column_of_labels_are_told_as_they_are() -> None:
    model = Tagger()
    line = last_line(Tagger, 2)
    assert told(lambda: functional.cross_entropy(model(SHORT), LABELS)) == (
        "the logits have the shape [5, 1, 2], 1 row a sample, and the labels [5], one a sample:"
        f" in {line} write self.head(out[:, -1])"
    )
    column = LABELS.unsqueeze(1)
    said = told(lambda: functional.cross_entropy(model(IDS), column))
    assert "and the labels [5, 1], one a sample" in said
    assert said.endswith("of their mean, and column.squeeze(1) for column")


@pytest.mark.parametrize(
    ("logits", "labels"),
    [((5, 7, 2), (5, 7)), ((5, 1, 2), (5, 1)), ((5, 7, 2), (35,)), ((5, 2, 4, 4), (5,))],
)
def test_labels_of_each_step_are_left_to_others(
    logits: tuple[int, ...], labels: tuple[int, ...]
) -> None:
    given = torch.zeros(logits), torch.zeros(labels).long()
    assert "one a sample" not in told(lambda: functional.cross_entropy(*given))
