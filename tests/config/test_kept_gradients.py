"""A script's loop that steps an optimizer and clears no gradients: a note at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

HEAD = """\
import torch
from torch import nn, optim
import own
from own import accuracy, learn
net = nn.Linear(2, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
data = [torch.ones(4, 2)] * 3
"""
LOOP = """\
for x in data:
    loss = net(x).sum()
    loss.backward()
    opt.step()
"""
IN_A_FUNCTION = """\
def train(model, optimizer):
    for x in data:
        model(x).sum().backward()
        optimizer.step()
for epoch in range(3):
    train(net, opt)
"""
IN_A_CLASS = """\
class Loop:
    def __init__(self, model, optimizer):
        self.model, self.n = model, 1
        self.optimizer = optimizer
    def batch(self, x):
        self.model(x).sum().backward()
        self.optimizer.step()
    def run(self):
        for x in data:
            self.batch(x)
Loop(net, opt).run()
"""
MADE_IN_A_FUNCTION = """\
def make(model):
    return optim.Adam(model.parameters())
other = make(net)
for x in data:
    net(x).sum().backward()
    other.step()
"""
SUMMED = """\
for n, x in enumerate(data):
    (net(x).sum() / 4).backward()
    if n % 4 == 3:
        opt.step()
"""
SCALED = """\
scaler = torch.amp.GradScaler("cpu")
for x in data:
    scaler.scale(net(x).sum()).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
"""
CLOSURE = """\
slow = optim.LBFGS(net.parameters())
for x in data:
    def closure():
        loss = net(x).sum()
        loss.backward()
        return loss
    slow.step(closure)
"""
TWO = """\
other = optim.Adam(net.parameters())
for x in data:
    net(x).sum().backward()
    opt.step()
    other.step()
"""
ONE_EACH = """\
for lr in data:
    opt = optim.SGD(net.parameters(), lr=0.1)
    net(lr).sum().backward()
    opt.step()
"""
ONE_IN_A_FUNCTION = """\
def once(x):
    one = optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    one.step()
for x in data:
    once(x)
"""
SAYS = "in a loop, and nothing clears its gradients, which add up over all steps; write"


def notes(folder: Path, text: str) -> list[str]:
    (folder / "own.py").write_text("def learn(*given): pass\n\ndef accuracy(*given): pass\n")
    (folder / "train.py").write_text(HEAD + text)
    (folder / "cfg.yaml").write_text("script: {path: train.py}\n")
    told = notes_on_code(load(folder / "cfg.yaml"), workdir=folder)
    return [it for it in told if "gradients" in it]


@pytest.mark.parametrize(
    ("text", "line", "name", "place"),
    [
        (LOOP, 11, "opt", "in front of line 10 (loss.backward())"),
        (
            LOOP.replace("loss.backward()", "with torch.enable_grad(): loss.backward()"),
            11,
            "opt",
            "behind line 11",
        ),
        (IN_A_FUNCTION, 11, "optimizer", "in front of line 10 (model(x).sum().backward())"),
        (
            IN_A_CLASS,
            14,
            "self.optimizer",
            "in front of line 13 (self.model(x).sum().backward())",
        ),
        (MADE_IN_A_FUNCTION, 13, "other", "in front of line 12 (net(x).sum().backward())"),
        (SUMMED, 11, "opt", "behind line 11"),
        (SCALED, 13, "opt", "in front of line 10 (scaler.scale(net(x).sum()).backward())"),
        (CLOSURE, 14, "slow", "in front of line 12 (loss.backward())"),
    ],
)
def test_it_is_noted_with_the_line_to_write(
    tmp_path: Path, text: str, line: int, name: str, place: str
) -> None:
    says = f"train.py:{line} steps {name} {SAYS} {name}.zero_grad() {place}"
    assert notes(tmp_path, text) == [says]


@pytest.mark.parametrize(
    "more",
    [
        "    acc = accuracy(net(x), x)\n",
        "    loss = learn(net(x))\n",
        "    print(opt, loss.item())\n",
        "    # opt.zero_grad()\n",
        "    if loss.isnan(): break\n",
        "    net.train()\n",
    ],
)
def test_what_clears_nothing_does_not_silence_it(tmp_path: Path, more: str) -> None:
    assert len(notes(tmp_path, LOOP + more)) == 1


def test_each_of_two_is_noted_once(tmp_path: Path) -> None:
    assert [it.split()[2] for it in notes(tmp_path, TWO)] == ["opt", "other"]


@pytest.mark.parametrize(
    "more",
    [
        "opt.zero_grad()",
        "opt.zero_grad(set_to_none=True)",
        "net.zero_grad()",
        "for p in net.parameters(): p.grad = None",
        "for p in net.parameters(): p.grad.zero_()",
        "setattr(net.weight, 'grad', None)",
        "learn(opt)",
        "learn(net)",
        "learn(net.parameters())",
        "own.learn(list(net.parameters()))",
        "net.start_anew()",
        "own.reset()",
        "with learn(opt): pass",
        "break",
    ],
)
def test_what_clears_them_or_may_do_so_is_said_nothing_of(tmp_path: Path, more: str) -> None:
    assert notes(tmp_path, f"{LOOP}    {more}\n") == []


@pytest.mark.parametrize(
    "text",
    [
        ONE_EACH,
        ONE_IN_A_FUNCTION,
        "net(data[0]).sum().backward()\nopt.step()\n",
        "opt = learn(net.parameters())\n" + LOOP,
        "engine, opt = learn(model=net, optimizer=opt)\n" + LOOP,
        "opt.register_step_post_hook(learn)\n" + LOOP,
        "from own import *\n" + LOOP,
        LOOP.replace("opt.step()", "learn().step()"),
        LOOP.replace("loss.backward()", "learn(loss)"),
    ],
)
def test_one_step_of_an_optimizer_and_another_kind_are_said_nothing_of(
    tmp_path: Path, text: str
) -> None:
    assert notes(tmp_path, text) == []
