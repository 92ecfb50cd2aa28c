"""A loop with a Session that steps at each micro batch is noted; one that accumulates is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_ranks_apart import told

LOOP = """\
import torch
from hpc_train import Session
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 1))
{before}
with Session.open(global_batch_size=4, {size}run_dir="run") as session:
    net = torch.nn.Linear(1, 1)
    {made}
    session.restore(model=net, optimizer=sgd)
    for epoch in session.epochs(2):
        for (x,) in {batches}:
            loss = net(x).sum() / session.accumulate
{body}
"""
SGD = "sgd = torch.optim.SGD(net.parameters(), 0.1)"
EACH = ["loss.backward()", "sgd.step()", "sgd.zero_grad()", "if session.step_is_due:"]
EACH += ["    session.stepped()"]
BATCHES = "session.batches(DataLoader(data))"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loop(
    *lines: str, size: str = "micro_batch_size=1, ", made: str = SGD, batches: str = BATCHES
) -> str:
    body = "\n".join(f"            {it}" for it in lines)
    return LOOP.format(before="", size=size, made=made, batches=batches, body=body)


@pytest.mark.parametrize(
    ("text", "line", "call"),
    [
        (loop(*EACH), 14, "sgd.step()"),
        (loop(*EACH, batches=f"enumerate({BATCHES})"), 14, "sgd.step()"),
        (loop(*EACH, size="micro_batch_size=args.micro, "), 14, "sgd.step()"),
        (loop(*EACH).replace("sgd", "optimizer"), 14, "optimizer.step()"),
        (loop(*EACH, made="sgd = make(net)").replace("sgd", "self.optim"), 14, "self.optim.step()"),
        (loop("loss.backward()", "scaler.step(sgd)", *EACH[3:]), 14, "scaler.step(sgd)"),
        (loop("with amp:", *[f"    {it}" for it in EACH[:2]], *EACH[3:]), 15, "sgd.step()"),
    ],
)
def test_a_step_at_each_micro_batch_is_noted(
    tmp_path: Path, text: str, line: int, call: str
) -> None:
    said = (
        f"train.py:{line} calls {call} at each micro batch, and session.stepped() under `if"
        " session.step_is_due:`: a step has a part of the global batch; put it under `if"
        " session.step_is_due:` (line "
    )
    assert said in told(tmp_path, text, gpus=1)[1]


def test_gradients_that_are_dropped_at_each_micro_batch_are_noted(tmp_path: Path) -> None:
    text = loop("sgd.zero_grad()", "loss.backward()", EACH[3], "    sgd.step()", EACH[4])
    said = (
        "train.py:13 calls sgd.zero_grad() at each micro batch, and steps under `if"
        " session.step_is_due:`: a step has the gradients of its last one alone; put it under"
    )
    assert said in told(tmp_path, text, gpus=1)[1]


DUE = ["loss.backward()", "if session.step_is_due:", "    sgd.step()", "    sgd.zero_grad()"]
DUE += ["    session.stepped()"]


@pytest.mark.parametrize(
    "text",
    [
        loop(*DUE),
        loop(*EACH, size=""),  # a rank takes its share at once
        loop(*EACH, size="micro_batch_size=None, "),
        loop(*DUE, "scheduler.step()"),
        loop("if not session.step_is_due:", "    continue", "sgd.step()", "session.stepped()"),
        loop("bad = torch.optim.SGD([x], 0.1)", "bad.step()", *DUE),
        loop("sums = [it.grad for it in net.parameters()]", "sgd.zero_grad()", *DUE),
        loop("if extra:", "    sgd.step()", *DUE),
        loop(*EACH).replace("hpc_train", "other"),
    ],
)
def test_what_accumulates_is_not_noted(tmp_path: Path, text: str) -> None:
    assert "at each micro batch" not in told(tmp_path, text, gpus=1)[1]
