"""A list, a number or a text in a tensor's place: the user's line with torch.tensor is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hpc_train.training.failures.failure_words import fix_of

LOGITS, LABELS = torch.randn(4, 2), torch.tensor([0, 1, 1, 0])
TEXT = "torch.tensor([1.0, 5.0])"
KEY = {"model.init_args.class_weights": TEXT}


def by_name(logits: Any, given: Any) -> Any:
    hparams = SimpleNamespace(class_weights=given)
    return functional.cross_entropy(logits, LABELS, weight=hparams.class_weights)


def by_place(logits: Any, given: Any) -> Any:
    return functional.nll_loss(logits, LABELS, given)


def of_class(logits: Any, given: Any) -> Any:
    return nn.CrossEntropyLoss(weight=given)(logits, LABELS)


def of_class_by_place(logits: Any, given: Any) -> Any:
    return nn.CrossEntropyLoss(given)(logits, LABELS)


def of_positives(logits: Any, given: Any) -> Any:
    return functional.binary_cross_entropy_with_logits(logits, logits.sigmoid(), pos_weight=given)


def of_the_labels(logits: Any, given: Any) -> Any:
    return functional.cross_entropy(logits, target=given)


def directly(logits: Any, given: Any) -> Any:
    return torch.matmul(logits, given)


def fix(make: Any, given: Any, texts: dict[str, str] | None = None) -> str:
    with pytest.raises(TypeError) as raised:
        make(LOGITS, given)
    return fix_of(raised.value, texts=texts)


DEVICE = "device=logits.device"


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (
            by_name,
            [1.0, 5.0],
            (
                "weight takes a tensor, and hparams.class_weights is a list: write"
                f" weight=torch.tensor(hparams.class_weights, {DEVICE})"
            ),
        ),
        (
            by_name,
            (1, 5),
            (
                "weight takes a tensor, and hparams.class_weights is a tuple: write"
                f" weight=torch.tensor(hparams.class_weights, dtype=torch.float32, {DEVICE})"
            ),
        ),
        (
            by_place,
            [1.0, 5.0],
            f"weight takes a tensor, and given is a list: write torch.tensor(given, {DEVICE})",
        ),
        (
            of_class,
            [1.0, 5.0],
            "weight takes a tensor, and given is a list: write weight=torch.tensor(given)",
        ),
        (
            of_class_by_place,
            [1, 5],
            (
                "weight takes a tensor, and given is a list: write torch.tensor(given,"
                " dtype=torch.float32)"
            ),
        ),
        (
            of_positives,
            5.0,
            (
                "pos_weight takes a tensor, and given is a float: write"
                f" pos_weight=torch.tensor([given], {DEVICE})"
            ),
        ),
        (
            of_the_labels,
            [0, 1, 1, 0],
            (
                "target takes a tensor, and given is a list: write"
                f" target=torch.tensor(given, {DEVICE})"
            ),
        ),
    ],
)
def test_the_line_is_told_with_a_tensor(make: Any, given: Any, said: str) -> None:
    assert fix(make, given) == said


@pytest.mark.parametrize("given", [[1.0, 5.0], [1, 5]])
def test_what_is_told_works(given: list[float]) -> None:
    kind = {} if isinstance(given[0], float) else {"dtype": torch.float32}
    made = torch.tensor(given, **kind, device=LOGITS.device)  # type: ignore[arg-type]
    assert by_name(LOGITS, made).item() > 0
    assert of_class(LOGITS, made).item() > 0


@pytest.mark.parametrize(("texts", "of"), [(KEY, f", from {next(iter(KEY))}"), ({}, "")])
def test_a_text_is_told_with_its_key_and_its_list(texts: dict[str, str], of: str) -> None:
    assert fix(by_name, TEXT, texts) == (
        f"weight takes a tensor, and hparams.class_weights is the text {TEXT!r}{of}: write"
        f" [1.0, 5.0] there, and weight=torch.tensor(hparams.class_weights, {DEVICE})"
    )


@pytest.mark.parametrize(
    ("make", "given"),
    [(by_name, "balanced"), (by_name, []), (by_name, ["a"]), (by_name, [LOGITS]), (directly, [1])],
)
def test_of_what_no_list_of_numbers_tells_nothing_is_said(make: Any, given: Any) -> None:
    assert "torch.tensor" not in fix(make, given)
