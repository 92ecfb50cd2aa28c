"""Objects that `__init__` makes without what their class needs are refused with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_sure_refusals import DATA, GIVES, said_of

PARTS = """
from torchmetrics import F1Score
import torchmetrics
import torchmetrics.classification as tc
class Encoder(torch.nn.Module):
    def __init__(self, width, depth, *, drop=0.1): ...
class Open:
    def __init__(self, width, **more): ...
class Kind(type):
    def __call__(cls): ...
class Filled(metaclass=Kind):
    def __init__(self, width): ...
"""
START = "    def __init__(self, {given}):\n        super().__init__()\n        {line}\n"
REFUSED = "cfg.yaml:3: model.class_path: nets.Net.__init__ calls {what} (nets.py:13) -> {hint}"


def of_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, given: str = "width=1"
) -> str:
    body = f"{GIVES}{START.format(line=line, given=given)}"
    return said_of(folder, monkeypatch, body, data=f"{PARTS}{DATA}")


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        (
            "self.f1 = F1Score()",
            "F1Score without a task",
            'write F1Score(task="multiclass", num_classes=N), or with task="binary"',
        ),
        (
            "self.a = [torchmetrics.Accuracy(num_classes=3)]",
            "torchmetrics.Accuracy without a task",
            'write torchmetrics.Accuracy(num_classes=3, task="multiclass"), or with task="binary"',
        ),
        (
            "self.f1 = F1Score(num_labels=4)",
            "F1Score without a task",
            'write F1Score(num_labels=4, task="multilabel")',
        ),
        (
            "self.a = tc.MulticlassAccuracy()",
            "tc.MulticlassAccuracy without num_classes",
            "write tc.MulticlassAccuracy(num_classes=N)",
        ),
        (
            "self.a = tc.MulticlassPrecision(average=None)",
            "tc.MulticlassPrecision without num_classes",
            "write tc.MulticlassPrecision(average=None, num_classes=N)",
        ),
        (
            "self.a = tc.MultilabelAccuracy()",
            "tc.MultilabelAccuracy without num_labels",
            "write tc.MultilabelAccuracy(num_labels=...)",
        ),
        (
            "self.a = F1Score('multiclass')",
            "F1Score without num_classes",
            "write F1Score('multiclass', num_classes=N)",
        ),
        (
            "self.a = torchmetrics.Accuracy(task='multilabel')",
            "torchmetrics.Accuracy without num_labels",
            "write torchmetrics.Accuracy(task='multilabel', num_labels=N)",
        ),
        ("self.e = Encoder(width)", "Encoder without depth", "write Encoder(width, depth=...)"),
        (
            "self.e = Encoder()",
            "Encoder without width, depth",
            "write Encoder(width=..., depth=...)",
        ),
        ("self.e = Open()", "Open without width", "write Open(width=...)"),
        (
            "self.e = Encoder(width, 2, dropp=0.2)",
            "Encoder with dropp, which it does not take",
            "did you mean 'drop'?",
        ),
        (
            "self.e = Encoder(width, 2, heads=0.2)",
            "Encoder with heads, which it does not take",
            "it takes width, depth, drop",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, what: str, hint: str
) -> None:
    assert of_line(tmp_path, monkeypatch, line) == REFUSED.format(what=what, hint=hint)


@pytest.mark.parametrize("given", ["num_classes", "n_classes=3", "*, num_labels"])
def test_the_number_of_classes_is_named_as_the_model_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    name = given.removeprefix("*, ").partition("=")[0]
    body = f"{GIVES}{START.format(line='self.f1 = F1Score()', given=given)}"
    body = body.replace("num_labels)", "num_labels=2)").replace(
        "(self, num_classes)", "(self, num_classes=2)"
    )
    said = said_of(tmp_path, monkeypatch, body, data=f"{PARTS}{DATA}")
    assert f'F1Score(task="multiclass", num_classes={name}), or' in said


@pytest.mark.parametrize(
    "line",
    [
        "self.e = Encoder(width, 2)",
        "self.e = Encoder(width, depth=2, drop=0.5)",
        "self.e = Encoder(*self.sizes)",
        "self.e = Encoder(**self.sizes)",
        "self.e = Open(1, any=2)",
        "self.e = Filled()",  # a metaclass gives it what it needs
        "self.f1 = F1Score('binary')",
        "self.f1 = F1Score(width)",
        "self.f1 = F1Score(task='binary')",
        "self.f1 = torchmetrics.CalibrationError(task='multiclass', num_classes=width)",
        "self.a = tc.MulticlassAccuracy(3)",
        "self.a = tc.MulticlassAccuracy(num_classes=width)",
        "self.a = tc.MulticlassAccuracy(average='micro')",
        "self.a = tc.MulticlassAccuracy(average=width)",
        "self.a = tc.MulticlassAccuracy(validate_args=False)",
        "self.a = tc.BinaryAccuracy()",
        "self.f1 = F1Score(task='multiclass', num_classes=3)",
        "self.make = lambda: Encoder()",
        "if width > 1: self.e = Encoder()",
        "Encoder = given; self.e = Encoder()",
        "self.layer = torch.nn.Linear()",  # not read
        "self.e = self.Encoder()",
    ],
)
def test_a_call_that_may_fit_is_told_nothing_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    assert of_line(tmp_path, monkeypatch, line) == ""
