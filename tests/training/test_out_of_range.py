"""Ids, labels and dimensions out of their range, told with the layer and the numbers at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hpc_train.training.failures.failure_words import fix_of

FILE = "tests/training/test_out_of_range.py"
OUT = torch.zeros(4, 3)
LINE = torch.zeros(4)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(10, 2), nn.Flatten(), nn.Linear(6, 3))

    def forward(self, ids: torch.Tensor) -> Any:
        return self.layers(ids)

    def loss(self, labels: list[int]) -> Any:
        return functional.cross_entropy(self(torch.zeros(2, 3).long()), torch.tensor(labels))


class Two(Words):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(6, 3)


LAYERS = Words.__init__.__code__.co_firstlineno + 2
WORDS, TWO = Words(), Two()


def fix_for(call: Callable[[], Any]) -> str:
    with pytest.raises((IndexError, RuntimeError)) as caught:
        call()
    return fix_of(caught.value)


def test_an_id_beyond_the_rows_of_an_embedding_is_told_with_both_and_the_layer() -> None:
    takes = f"self.layers[0] = nn.Embedding(10, 2) ({FILE}:{LAYERS}) takes ids from 0 to 9, and is"
    assert fix_for(lambda: WORDS(torch.tensor([[0, 12, 11]]))) == (
        f"{takes} given 12: write a number above all ids of the data in place of 10 (13 or more),"
        " or give it other ids"
    )
    assert fix_for(lambda: WORDS(torch.tensor([[0, -1, 2]]))) == f"{takes} given -1"
    assert fix_for(lambda: nn.Embedding(2, 1)(torch.tensor(2))).startswith(
        "nn.Embedding(2, 1) takes ids from 0 to 1, and is given 2: "
    )
    assert not fix_for(lambda: functional.embedding(torch.tensor([2]), torch.zeros(2, 2)))


class Unmade(nn.Module):
    def __init__(self) -> None:
        nn.Embedding(2, 1)(torch.tensor([5]))


def test_in_a_module_that_is_not_made_yet_the_layer_alone_is_told() -> None:
    assert fix_for(Unmade).startswith("nn.Embedding(2, 1) takes ids from 0 to 1, and is given 5")


def test_a_label_beyond_the_classes_is_told_with_the_layer_that_gives_them() -> None:
    shape = "the logits have the shape [2, 3], for the labels 0 to 2"
    has = f"{shape}, and the largest label of this batch is"
    layer = f"self.layers[2] = nn.Linear(6, 3) ({FILE}:{LAYERS})"
    assert fix_for(lambda: WORDS.loss([0, 3])) == (
        f"{has} 3: write nn.Linear(6, 4) or more for {layer}, or other labels"
    )
    assert fix_for(lambda: WORDS.loss([1, 3])).endswith(", or y - 1 where labels begin at 1")
    assert fix_for(lambda: WORDS.loss([0, 7])).endswith(
        f"7: write nn.Linear(6, 8) or more for {layer}, or other labels"
    )
    assert fix_for(lambda: WORDS.loss([0, -1])) == f"{shape}, and a label is -1"
    assert fix_for(lambda: TWO.loss([0, 4])).endswith("give the last layer 5 outputs or more, or"
                                                      " other labels")  # fmt: skip


def test_of_labels_beyond_the_classes_the_largest_decides_and_not_the_first() -> None:
    assert "batch is 6: write nn.Linear(6, 7) or more for" in fix_for(lambda: WORDS.loss([3, 6]))
    assert "batch is 5: write nn.Linear(6, 6)" in fix_for(lambda: WORDS.loss([5, -100]))
    of_image = torch.tensor([[[4, 255], [3, 0]]])
    told = fix_for(lambda: functional.cross_entropy(torch.zeros(1, 3, 2, 2), of_image,
                                                    ignore_index=255))  # fmt: skip
    assert "largest label of this batch is 4: give the last layer 5 outputs" in told
    assert "is 3: give the last" in fix_for(lambda: functional.nll_loss(OUT, torch.arange(4)))
    assert "is 5: give the" in fix_for(lambda: nn.CrossEntropyLoss()(LINE, torch.tensor(5)))


class Masked(nn.Module):
    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.criterion = nn.CrossEntropyLoss(**given)

    def step(self, labels: Any) -> Any:
        return self.criterion(torch.zeros(1, 3, 2, 2), torch.tensor([labels]))

    def own(self, labels: Any) -> Any:
        return functional.cross_entropy(LOGITS, torch.tensor(labels))


LOGITS = torch.zeros(4, 3)
CRITERION = f"{FILE}:{Masked.__init__.__code__.co_firstlineno + 2}"


@pytest.mark.parametrize(
    ("call", "label", "write"),
    [
        (
            lambda: Masked().step([[0, 255], [1, 255]]),
            255,
            f"write self.criterion = nn.CrossEntropyLoss(ignore_index=255) ({CRITERION})",
        ),
        (
            lambda: Masked(label_smoothing=0.1).step([[0, 255], [1, 2]]),
            255,
            f"add ignore_index=255 to the nn.CrossEntropyLoss of self.criterion ({CRITERION})",
        ),
        (
            lambda: Masked().own([0, 999, 1, 2]),
            999,
            "write functional.cross_entropy(LOGITS, torch.tensor(labels), ignore_index=999)",
        ),
        (
            lambda: Masked().own([0, -1, 1, 2]),
            -1,
            "write functional.cross_entropy(LOGITS, torch.tensor(labels), ignore_index=-1)",
        ),
        (
            lambda: nn.NLLLoss()(LOGITS, torch.tensor([0, 255, 1, 2])),
            255,
            "add ignore_index=255 to the nn.NLLLoss",
        ),
    ],
)
def test_a_label_that_marks_what_has_no_class_is_to_be_ignored(
    call: Callable[[], Any], label: int, write: str
) -> None:
    told = fix_for(call)
    assert f"for the labels 0 to 2, and this batch has the label {label} as well: {write}" in told
    assert told.endswith(f" where {label} marks what has no class, or give other labels")


@pytest.mark.parametrize("labels", [[1, 3, 2, 1], [-1, 0, 1, 1], [0, 7, 1, 2], [0, 255, 300, 1]])
def test_labels_that_were_counted_in_another_way_are_not_ignored(labels: list[int]) -> None:
    assert "ignore_index" not in fix_for(lambda: Masked().own(labels))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: OUT.argmax(2),
            (
                "OUT has the shape [4, 3], which has 2 dimensions, 0 and 1: write OUT.argmax(1) for"
                " the last"
            ),
        ),
        (lambda: OUT.mean(dim=3), "write OUT.mean(dim=1) for the last"),
        (lambda: functional.softmax(OUT, dim=2), "write functional.softmax(OUT, dim=1) for the"),
        (lambda: torch.argmax(OUT, 2), "write torch.argmax(OUT, 1) for the last"),
        (lambda: (OUT * 2).argmax(2), "OUT * 2 has 2 dimensions, 0 and 1: write (OUT * 2).argmax"),
        (lambda: LINE.argmax(1), "LINE has the shape [4], which has 1 dimension, 0: write"),
        (lambda: OUT.transpose(1, 2), "OUT has the shape [4, 3], which has 2 dimensions, 0 and 1"),
        (lambda: OUT.argmax(-3), "OUT has the shape [4, 3], which has 2 dimensions, 0 and 1"),
        (
            lambda: OUT.permute(0, 2, 1),
            "OUT has the shape [4, 3], and permute names 3 dimensions: name 2, which are 0 and 1",
        ),
        (lambda: torch.permute(LINE, (0, 1)), "permute names 2 dimensions: name 1, which are 0"),
        (lambda: OUT.sum(1).permute(0, 1), ""),
        (lambda: torch.cat([OUT, OUT], dim=2), ""),
        (lambda: nn.Softmax(dim=2)(OUT), ""),
        (lambda: OUT.sum(1).sum(1), ""),
    ],
)
def test_a_dimension_that_there_is_not_is_told_with_those_there_are(call: Any, told: str) -> None:
    fix = fix_for(call)
    assert told in fix
    assert bool(fix) is bool(told)
    assert "transpose" not in fix


@pytest.mark.parametrize(
    ("classes", "labels", "is_image"),
    [(2, [0, 255, 255], True), (2, [0, 255, 1], False), (3, [0, 255, 0], False)],
)
def test_a_mask_of_black_and_white_has_two_classes(
    classes: int, labels: list[int], is_image: bool
) -> None:
    """With ignore_index=255 it trained on the background alone."""
    mask, criterion = torch.tensor(labels), nn.CrossEntropyLoss()
    told = fix_for(lambda: criterion(torch.zeros(3, classes), mask))
    alone = "the labels are 0 and 255 alone, as of a black-and-white image"
    assert (f"{alone}: write (mask > 127).long() for mask" in told) is is_image
    assert ("ignore_index=255" in told) is not is_image
