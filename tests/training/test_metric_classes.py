"""A metric that was made for another number of classes, as torchmetrics refuses it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torchmetrics
from torchmetrics.functional import accuracy

from hpc_train.training.failures.failure_words import fix_of

OUT, Y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])


class Net(torch.nn.Module):
    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.acc = torchmetrics.Accuracy(**given)

    def forward(self, out: torch.Tensor, y: torch.Tensor) -> Any:
        return self.acc(out, y)


def fix(call: Any, *given: Any, **named: Any) -> str:
    with pytest.raises((ValueError, RuntimeError)) as caught:
        call(*given, **named)
    return fix_of(caught.value)


def test_another_number_of_classes_is_told_with_both() -> None:
    assert fix(Net(task="multiclass", num_classes=2), OUT, Y) == (
        "self.acc was made with num_classes=2, and is given 3 classes: write num_classes=3, or"
        " give it what has 2"
    )
    said = fix(accuracy, OUT, Y, task="multiclass", num_classes=5)
    assert said.startswith("the metric was made with num_classes=5, and is given 3 classes: ")
    metric = torchmetrics.AUROC(task="multiclass", num_classes=4)
    assert "MulticlassAUROC was made with num_classes=4" in fix(metric, OUT.softmax(1), Y)


def test_another_number_of_labels_is_told() -> None:
    said = fix(Net(task="multilabel", num_labels=2), OUT.sigmoid(), OUT.sigmoid().round().int())
    assert "num_labels=2, and is given 3 labels: write num_labels=3" in said


def test_what_is_wrong_with_other_shapes_is_left_to_torchmetrics() -> None:
    assert "num_classes" not in fix(Net(task="multiclass", num_classes=3), OUT, Y[:2])
    assert "num_classes" not in fix(Net(task="multiclass", num_classes=2), Y, Y)


class Swapped(Net):
    def forward(self, out: torch.Tensor, y: torch.Tensor) -> Any:
        return self.acc(y, out)


def test_labels_in_the_place_of_the_predictions_are_told_with_the_call_to_write() -> None:
    assert fix(Swapped(task="multiclass", num_classes=3), OUT, Y) == (
        "it is given int64 [4] as predictions and float32 [4, 3] as labels: write self.acc(out, y)"
    )
    assert "as labels" not in fix(Net(task="multiclass", num_classes=2), OUT, Y)


class Two(Net):
    def forward(self, out: torch.Tensor, y: torch.Tensor) -> Any:
        logits = {"of": out}
        return [self.acc(logits["of"], y > 0)]


COLUMN, ROW = torch.randn(4, 1), torch.tensor([0, 1, 1, 0])


def test_a_dimension_of_one_too_many_is_taken_out_in_the_call() -> None:
    assert fix(Net(task="binary"), COLUMN, ROW) == "write self.acc(out.squeeze(1), y)"
    assert (
        fix(Net(task="binary"), COLUMN[:, 0], ROW[:, None]) == "write self.acc(out, y.squeeze(1))"
    )
    assert fix(Two(task="binary"), COLUMN, ROW) == "write self.acc(logits['of'].squeeze(1), y > 0)"
    assert fix(Net(task="binary"), COLUMN[:1], ROW[:1]) == "write self.acc(out.squeeze(1), y)"
    three = Net(task="multiclass", num_classes=3)
    assert fix(three, OUT, Y[:, None]) == "write self.acc(out, y.squeeze(1))"
    error = torchmetrics.MeanSquaredError()
    assert fix(lambda: error.update(preds=COLUMN * 2, target=COLUMN[:, 0])) == (
        "write error.update(preds=(COLUMN * 2).squeeze(1), target=COLUMN[:, 0])"
    )
    given = (COLUMN, ROW)
    assert fix(lambda: accuracy(*given, task="binary")) == (
        "write .squeeze(1) behind the predictions"
    )


def test_classes_for_a_binary_metric_are_told_with_their_number() -> None:
    told = fix(Net(task="binary"), OUT, ROW)
    assert told == (
        'self.acc is binary, and is given 3 classes: write task="multiclass", num_classes=3, which'
        " is MulticlassAccuracy"
    )


def test_of_other_shapes_nothing_is_said() -> None:
    assert not fix(Net(task="binary"), COLUMN[:3], ROW)
    assert not fix(Net(task="binary"), COLUMN[:, 0], ROW[:3])


class Named(torch.nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.acc = torchmetrics.Accuracy(task="multiclass")
        self.head = torch.nn.Linear(4, classes)


class OfHead(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.acc = torchmetrics.F1Score("multiclass", average="macro")
        self.head = torch.nn.Linear(4, 10)


class OfLayers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.hidden = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 10)
        self.acc = torchmetrics.AUROC(task="multiclass", num_classes=None)


class OfLabels(torch.nn.Module):
    def __init__(self, num_labels: int = 3) -> None:
        super().__init__()
        self.both = torchmetrics.MetricCollection(
            [
                torchmetrics.Accuracy(task="multilabel", num_labels=num_labels),
                torchmetrics.Precision(task="multilabel"),
            ]
        )


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        (Named, "torchmetrics.Accuracy(task='multiclass', num_classes=classes)"),
        (
            OfHead,
            (
                "torchmetrics.F1Score('multiclass', average='macro', num_classes=10),"
                " as self.head gives"
            ),
        ),
        (
            OfLayers,
            "torchmetrics.AUROC(task='multiclass', num_classes=N), N the number of classes",
        ),
        (OfLabels, "torchmetrics.Precision(task='multilabel', num_labels=num_labels)"),
    ],
)
def test_a_task_without_its_number_is_told_with_the_call_to_write(kind: Any, write: str) -> None:
    assert fix(kind) == f"write {write}"


def test_a_function_of_torchmetrics_is_told_so_too() -> None:
    call = "accuracy(OUT, Y, task='multiclass', num_classes=N), N the number of classes"
    assert fix(lambda: accuracy(OUT, Y, task="multiclass")) == f"write {call}"


def test_what_is_given_by_a_dict_is_not_written_again() -> None:
    assert fix(Net, task="multiclass") == ""
