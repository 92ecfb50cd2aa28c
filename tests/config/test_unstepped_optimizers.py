"""A script's optimizer that nothing steps: a note at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

SCRIPT = """\
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from own import learn
net = nn.Linear(2, 1)
MADE
for _ in range(3):
    opt.zero_grad()
    loss = net(torch.ones(4, 2)).sum()
    BACK
    MORE
"""
MADE = "opt = optim.SGD(net.parameters(), lr=0.1)"
NOTE = "train.py:6 makes opt (SGD), and nothing steps it: the weights stay as they are; "


def notes(
    folder: Path, more: str = "pass", made: str = MADE, back: str = "loss.backward()"
) -> list[str]:
    (folder / "own.py").write_text("def learn(*given): pass\n")
    text = SCRIPT.replace("MADE", made).replace("BACK", back)
    (folder / "train.py").write_text(text.replace("MORE", more))
    (folder / "cfg.yaml").write_text("script: {path: train.py}\n")
    told = notes_on_code(load(folder / "cfg.yaml"), workdir=folder)
    return [it for it in told if "nothing steps it" in it]


@pytest.mark.parametrize(
    ("made", "line", "more"),
    [
        (MADE, 10, "pass"),
        (MADE, 10, "print(opt)"),
        (MADE.replace("optim.", "torch.optim."), 10, "opt.param_groups[0]['lr'] = 0.1"),
        (f"{MADE}; plan = StepLR(opt, 1)", 10, "plan.step()"),
    ],
)
def test_it_is_noted_with_the_line_to_write(
    tmp_path: Path, made: str, line: int, more: str
) -> None:
    assert notes(tmp_path, more, made) == [f"{NOTE}write opt.step() behind line {line}"]


def test_each_of_two_is_noted(tmp_path: Path) -> None:
    two = "opt, other = 1, 2; opt = optim.SGD(net.parameters()); other = optim.Adam([])"
    assert [it.split()[2] for it in notes(tmp_path, made=two)] == ["opt", "other"]


@pytest.mark.parametrize(
    "more",
    [
        "opt.step()",
        "torch.amp.GradScaler().step(opt)",
        "learn(opt)",
        "for it in [opt]: it.step()",
        "go = opt.step",
        "learn(optimizer=opt)",
        "state = {'opt': opt}",
        "trainer = learn().step_all",
    ],
)
def test_what_steps_it_or_may_do_so_is_said_nothing_of(tmp_path: Path, more: str) -> None:
    assert notes(tmp_path, more) == []


def test_without_a_backward_pass_nothing_is_said(tmp_path: Path) -> None:
    assert notes(tmp_path, back="learn(loss)") == []


def test_an_optimizer_of_another_kind_is_said_nothing_of(tmp_path: Path) -> None:
    assert notes(tmp_path, made="opt = learn(net.parameters())") == []
