"""Scripts of several ranks that average no gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

FABRIC = """\
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

def main():
    fabric = Fabric()
    fabric.launch()
    net = torch.nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = DataLoader(torch.ones(64, 8), batch_size=16)
    for x in batches:
        loss = net(x).sum()
        fabric.backward(loss)
        sgd.step(); sgd.zero_grad()

main()
"""
RAW = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
net = torch.nn.Linear(8, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()
for x in torch.ones(4, 16, 8):
    loss = net(x).sum()
    loss.backward()
    sgd.step(); sgd.zero_grad()
net.eval()
"""
APART = "of 2 ranks each trains a model of its own, as no gradients are averaged"
OR_ONE = "or start it with --nodes 1 --gpus 1"
AND_BATCHES = "and batches = fabric.setup_dataloaders(batches) behind line 10"
OF_FABRIC = (
    f"train.py:6 makes a Fabric, and nothing calls its setup: {APART}",
    f"write net, sgd = fabric.setup(net, sgd) behind line 9, {AND_BATCHES}, {OR_ONE}",
)
OF_RAW = (
    f"train.py:3 makes a process group, and nothing wraps the model: {APART}",
    f"write net = torch.nn.parallel.DistributedDataParallel(net) behind line 5, {OR_ONE}",
)


def told(folder: Path, text: str, *words: str, gpus: int = 2) -> tuple[tuple[str, str] | None, str]:
    """What is refused, with its fix; and the notes."""
    write(folder, text, "train.py")
    try:
        notes = api.load("train.py", *words, gpus=gpus).notes
    except ConfigError as error:
        return (error.message.removeprefix("train.py: script.path: "), error.hint or ""), ""
    return None, " | ".join(notes)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "said"), [(FABRIC, OF_FABRIC), (RAW, OF_RAW)])
def test_ranks_that_all_do_the_same_are_refused(
    tmp_path: Path, text: str, said: tuple[str, str]
) -> None:
    assert told(tmp_path, text) == (said, "")
    assert told(tmp_path, text, gpus=1) == (None, "")
    assert told(tmp_path, text, "script.launcher=none") == (None, "")


def test_three_nodes_count_as_well(tmp_path: Path) -> None:
    refused, _ = told(tmp_path, RAW, "slurm.nodes=3", gpus=1)
    assert refused is not None
    assert "of 3 ranks" in refused[0]


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (FABRIC, "print(fabric.global_rank)", OF_FABRIC),
        (FABRIC, "fabric.all_reduce(loss)", OF_FABRIC),
        (RAW, "print(dist.get_rank())", OF_RAW),
        (RAW, "dist.barrier()", OF_RAW),
        (RAW, "dist.all_reduce(loss)", OF_RAW),
        (RAW, "torch.utils.data.DataLoader(x); dist.all_reduce(loss)", OF_RAW),
        (RAW, "from torch.utils.data import DistributedSampler", OF_RAW),
    ],
)
def test_what_may_be_meant_is_noted(
    tmp_path: Path, text: str, more: str, said: tuple[str, str]
) -> None:
    body, call, _ = text.partition("main()\n") if text == RAW else (text[:-7], "main()\n", "")
    write_more = f"    {more}\n\n{call}" if text == FABRIC else f"{more}\n"
    assert told(tmp_path, body + write_more) == (None, "; ".join(said))


@pytest.mark.parametrize(
    "text",
    [
        FABRIC.replace("    for x", "    net, sgd = fabric.setup(net, sgd)\n    for x"),
        FABRIC.replace("    for x", "    net = fabric.setup_module(net)\n    for x"),
        FABRIC.replace("    for x", "    net, sgd = helper.ready(fabric, net, sgd)\n    for x")
        + "import helper\n",
        FABRIC.replace("    for x", "    net = lib.ready(fabric, net)\n    for x") + "import lib\n",
        FABRIC.replace("        fabric.backward(loss)\n", ""),
        RAW.replace("net.train()", "net = torch.nn.parallel.DistributedDataParallel(net)"),
        RAW.replace("net.train()", "from torch.nn.parallel import DistributedDataParallel as W"),
        RAW.replace("net.train()", "from torch.distributed.fsdp import fully_shard as w; w(net)"),
        RAW.replace("    sgd.step()", "    [dist.all_reduce(p.grad) for p in net.parameters()]"),
        RAW.replace("    sgd", "    for p in net.parameters(): dist.all_reduce(p)\n    sgd"),
        RAW.replace("    loss.back", "    dist.nn.all_reduce(loss)\n    loss.back"),
        RAW.replace("net.train()", "import deepspeed"),
        RAW.replace("    loss.backward()\n", ""),
        RAW.replace('dist.init_process_group("gloo")', "pass"),
    ],
)
def test_what_may_average_is_not_told(tmp_path: Path, text: str) -> None:
    write(tmp_path, "def ready(f, *given):\n    return f.setup(*given)\n", "helper.py")
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib", "from lib.inner import ready\n", "__init__.py")
    write(tmp_path / "lib", "def ready(f, net):\n    return f.setup_module(net)\n", "inner.py")
    refused, notes = told(tmp_path, text)
    assert "gradients" not in notes
    assert refused is None or "deepspeed" in refused[0]
