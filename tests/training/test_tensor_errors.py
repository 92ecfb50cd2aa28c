"""Errors of a first model or data set, as torch raises them, and what diagnose says to write."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import default_collate

from hpc_train.diagnose.read_logs import ReadLogs

OUT = torch.randn(4, 3, requires_grad=True)
Y = torch.tensor([0, 1, 2, 0])
LINEAR = nn.Linear(8, 3)


def _twice() -> None:
    loss = OUT.square().sum()
    loss.backward()
    loss.backward()


def _in_place() -> None:
    made = OUT.exp()
    loss = made.square().sum()
    made.add_(1)
    loss.backward()


def _bce_of(target: torch.Tensor) -> None:
    nn.functional.binary_cross_entropy(OUT[:, 0].sigmoid(), target)


# What fails, and what the fix has to name.
FAILURES: dict[str, tuple[Callable[[], Any], str]] = {
    "float labels": (lambda: functional.cross_entropy(OUT, Y.float()), "y.long()"),
    "int32 labels": (lambda: functional.cross_entropy(OUT, Y.int()), "y.long()"),
    "labels of [batch, 1]": (lambda: functional.cross_entropy(OUT, Y[:, None]), "y.squeeze(1)"),
    "one-hot labels": (lambda: functional.cross_entropy(OUT, functional.one_hot(Y)), "y.argmax(1)"),
    "a label too large": (lambda: functional.cross_entropy(OUT, Y + 2), "number of classes - 1"),
    "labels of a sequence": (
        lambda: functional.nll_loss(torch.randn(3, 5, 2), torch.zeros(3, 5).long()),
        "transpose(1, 2)",
    ),
    "one label of a sequence": (
        lambda: functional.nll_loss(torch.randn(3, 5, 2), torch.zeros(3).long()),
        "x[:, -1], its last step, or x.mean(1)",
    ),
    "a state of another batch": (
        lambda: nn.LSTM(2, 4)(torch.zeros(3, 5, 2), (torch.zeros(1, 4, 4), torch.zeros(1, 4, 4))),
        "self.rnn(x) in place of self.rnn(x, h)",
    ),
    "integers for bce": (
        lambda: functional.binary_cross_entropy_with_logits(OUT[:, 0], Y),
        "y.float()",
    ),
    "integers for bce, too": (lambda: _bce_of(Y), "y.float()"),
    "doubles for bce": (lambda: _bce_of(torch.ones(4).double()), "y.float()"),
    "bce of logits": (
        lambda: functional.binary_cross_entropy(OUT * 9, OUT.detach()),
        "_with_logits(out, y)",
    ),
    "bce of other shape": (
        lambda: functional.binary_cross_entropy_with_logits(OUT[:, :1], torch.ones(4)),
        "out.squeeze(1)",
    ),
    "doubles for a layer": (lambda: LINEAR(torch.ones(4, 8).double()), "x.float()"),
    "bytes for a layer": (
        lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 3, 8, 8).byte()),
        "x.float() / 255 for what goes in",
    ),
    "too many features": (lambda: LINEAR(torch.ones(4, 9)), "nn.Linear(9, 3)"),
    "channels last": (lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 8, 8, 3)), "x.permute(0, 3, 1, 2)"),
    "no batch": (lambda: nn.Conv2d(3, 4, 3)(torch.ones(8, 8)), "x.unsqueeze(0)"),
    "an image too small": (lambda: nn.Conv2d(1, 1, 5)(torch.ones(1, 1, 2, 2)), "A larger image"),
    "no such dimension": (lambda: functional.softmax(OUT, dim=3), "print(x.shape)"),
    "sizes": (lambda: torch.ones(3) + torch.ones(4), "the shapes of both"),
    "floats as ids": (lambda: nn.Embedding(5, 2)(torch.ones(3)), ".long()"),
    "an id too large": (lambda: nn.Embedding(5, 2)(torch.tensor([7])), "rows of the embedding"),
    "one_hot": (lambda: functional.one_hot(Y, 2), "num_classes"),
    "the mean of integers": (lambda: Y.mean(), ".float().mean()"),
    "an if of a tensor": (lambda: bool(OUT > 0), ".any()"),
    "a loss that is not made": (
        lambda: nn.CrossEntropyLoss(OUT, OUT),
        "nn.CrossEntropyLoss()(out, y)",
    ),
    "an if of an array": (lambda: bool(np.ones(3) > 0), ".any()"),
    "a detached loss": (lambda: OUT.detach().sum().backward(), "requires_grad"),
    "a loss of many numbers": (lambda: (OUT * 2).backward(), "its mean or sum"),
    "backward twice": (_twice, "state.detach()"),
    "in place": (_in_place, "x = x + 1"),
    "a parameter in place": (lambda: OUT.add_(1), "torch.no_grad()"),
    "view": (lambda: torch.ones(3, 4).t().view(12), ".reshape(...)"),
    "numpy of a loss": (lambda: OUT.numpy(), ".detach().cpu()"),
    "item of many": (lambda: OUT.item(), ".mean()"),
    "a batch as a tensor": (lambda: LINEAR((1, 2)), "`x, y = batch`"),
    "an array as a tensor": (lambda: LINEAR(np.ones((2, 8))), "torch.as_tensor"),
    "text as a tensor": (lambda: torch.tensor([None]), "numbers alone"),
    "a flipped array": (lambda: torch.from_numpy(np.ones(4)[::-1]), ".copy()"),
    "samples that differ": (lambda: default_collate([torch.ones(2), torch.ones(3)]), "pad"),
    "no sample": (lambda: default_collate([None, None]), "`return x, y`"),
    "a sample of no type": (lambda: default_collate([object(), object()]), "collate_fn"),
    "text in arrays": (lambda: default_collate([np.array(["a"])] * 2), "collate_fn"),
    "no forward": (lambda: type("Net", (nn.Module,), {})()(OUT), "def forward(self, x)"),
    "a tensor for parameters": (lambda: torch.optim.SGD(OUT, lr=1), "self.parameters()"),
    "a negative lr": (lambda: torch.optim.SGD([OUT], lr=-1), "0 or more"),
    "exit()": (lambda: sys.exit(), "self.trainer.should_stop = True"),
    "sys.exit(3)": (lambda: sys.exit(3), "self.trainer.should_stop = True"),
    "sys.exit(text)": (lambda: sys.exit("enough"), "self.trainer.should_stop = True"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FAILURES)
def test_an_error_of_the_first_days_is_known_and_the_fix_names_what_to_write(name):
    work, wanted = FAILURES[name]
    logs = ReadLogs()
    with pytest.raises((Exception, SystemExit)) as raised:
        work()
    for number, line in enumerate(traceback.format_exception(raised.value), 1):
        for part in line.splitlines():
            logs.feed(part, "a.log", number)
    (found,) = logs.findings()
    assert found.is_known
    assert wanted in found.fix


def test_the_end_of_a_program_by_its_argument_parser_is_not_told_as_one_to_take_out():
    logs = ReadLogs()
    for number, line in enumerate(("Traceback (most recent call last):", "SystemExit: 2"), 1):
        logs.feed(line, "a.log", number)
    assert not any(item.is_known for item in logs.findings())
