"""Mistakes that a GPU alone shows: each in a small project, and what has to be said of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

PROJECT = """\
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count=256):
        self.x, self.y = torch.randn(count, 8), torch.arange(count) % 4

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
{item}

class Data(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
{loader}

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 4)
{init}

    def training_step(self, batch, batch_idx):
        x, y = batch
{step}
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
ITEM = "return self.x[index], self.y[index]"
LOADER = "return DataLoader(Rows(), batch_size=self.batch_size)"
CONFIG: dict[str, Any] = {
    "name": "slip",
    "global_batch_size": 32,
    "model": {"class_path": "nets.Net"},
    "data": {"class_path": "nets.Data"},
    "trainer": {"max_epochs": 1, "accelerator": "gpu"},
    "preflight": "off",
}


@dataclass(frozen=True, kw_only=True)
class Slip:
    """Lines of the model, of its step and of the data, and keys beside them; or a script.

    Attributes:
        where: The user's line that has to be named, as `nets.py:35`.
        wants: What the screen of `hpc-train run` has to say, each as a text.
    """

    init: str = ""
    step: str = ""
    item: str = ITEM
    loader: str = LOADER
    script: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    where: str = ""
    wants: tuple[str, ...] = ()

    def write(self, folder: Path) -> list[str]:
        """Write the project; the words behind `hpc-train run`."""
        if self.script:
            (folder / "train.py").write_text(self.script)
            return ["train.py", *self.words]
        lines = {"item": self.item, "loader": self.loader, "init": self.init, "step": self.step}
        code = {name: indent(text or "pass", " " * 8) for name, text in lines.items()}
        (folder / "nets.py").write_text(PROJECT.format(**code))
        keys = {
            **CONFIG,
            **self.keys,
            "trainer": {**CONFIG["trainer"], **self.keys.get("trainer", {})},
        }
        (folder / "cfg.yaml").write_text(yaml.safe_dump(keys))
        return ["cfg.yaml", *self.words]


RAW = """\
import os
import torch
import torch.distributed as dist
from torch import nn
{}
model = nn.Linear(8, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x, y = torch.randn(32, 8), torch.randint(4, (32,))
    {}
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
"""
MOVED = "x, y = x.to(device), y.to(device)"
DEVICE = 'device = torch.device("cuda")'
RANKS = """\
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["{}"]))
device = "cuda"
"""
EMBED = Slip(init="self.embed = nn.Embedding(3, 8)", step="x = self.embed(y)")
OF_FOUR = """\
tag = torch.serialization.location_tag
torch.serialization.location_tag = lambda storage: "cuda:3"
torch.save(nn.Linear(8, 4).state_dict(), "w.pt")
torch.serialization.location_tag = tag
self.net.load_state_dict(torch.load("w.pt"))
"""
MOVES = "return self.x[index].cuda(), self.y[index].cuda()"
SIZED = "return DataLoader(Rows(), batch_size=self.batch_size, {})"
ONE = "this process sees 1 GPU (cuda:0)"
TO_CPU = "--nodes 1 --gpus 1 trains on GPUs"

SLIPS = {
    "a new tensor in the step": Slip(
        step="noise = torch.randn(x.shape)\nx = x + noise",
        where="nets.py:35",
        wants=(
            "noise is on cpu and x on cuda:0",
            "write torch.randn(x.shape, device=self.device) (nets.py:34)",
        ),
    ),
    "a plain tensor of the model": Slip(
        init="self.mean = torch.zeros(8)",
        step="x = x - self.mean",
        where="nets.py:34",
        wants=('write self.register_buffer("mean", torch.zeros(8)) (nets.py:30)',),
    ),
    "class weights on the CPU": Slip(
        init="self.w = torch.ones(4)",
        step="return F.cross_entropy(self.net(x), y, weight=self.w)",
        wants=('write self.register_buffer("w", torch.ones(4)) (nets.py:30)',),
    ),
    "layers in a plain list": Slip(
        init="self.layers = [nn.Linear(8, 8) for _ in range(2)]",
        step="for layer in self.layers:\n    x = layer(x)",
        wants=("self.layers is a plain list", "write nn.ModuleList("),
    ),
    "the model moved to the CPU in the step": Slip(
        step="if batch_idx == 2:\n    self.cpu()",
        where="nets.py:36",
        wants=(
            "tensors of one operation are on different devices",
            "(.to(device), register_buffer",
        ),
    ),
    "a metric of torchmetrics in a dict": Slip(
        init="import torchmetrics\n"
        "self.metrics = {'acc': torchmetrics.classification.MulticlassAccuracy(num_classes=4)}",
        step="self.log('acc', self.metrics['acc'](self.net(x), y))",
        wants=("a metric of torchmetrics, MulticlassAccuracy, is on another device",),
    ),
    "numpy of a metric": Slip(
        step="self.log('acc', (self.net(x).argmax(1) == y).float().mean().numpy())",
        where="nets.py:34",
        wants=("x.detach().cpu().float().numpy()",),
    ),
    "numpy's function of a GPU tensor": Slip(
        step="import numpy as np\nself.log('big', float(np.mean(self.net(x))))",
        where="nets.py:35",
        wants=("np.mean was given a tensor: write self.net(x).mean() of torch",),
    ),
    "a label out of range": Slip(
        step="y = y + 1",
        wants=("a label that is out of range of the classes", "CUDA_LAUNCH_BLOCKING=1"),
    ),
    "a label of -1": Slip(step="y = y - 1", wants=("a label that is out of range of the classes",)),
    "a token out of range": replace(EMBED, wants=("an index that is out of range of what",)),
    "logits in binary_cross_entropy": Slip(
        step="return F.binary_cross_entropy(self.net(x), F.one_hot(y, 4).float())",
        where="nets.py:34",
        wants=("binary_cross_entropy_with_logits",),
    ),
    "probabilities in half precision": Slip(
        step="return F.binary_cross_entropy(self.net(x).sigmoid(), F.one_hot(y, 4).float())",
        keys={"trainer": {"precision": "16-mixed"}},
        where="nets.py:34",
        wants=("write F.binary_cross_entropy_with_logits",),
    ),
    "the data set moves to the GPU, with workers": Slip(
        item=MOVES,
        loader=SIZED.format("num_workers=2"),
        where="nets.py:16",
        wants=("no .cuda()",),
    ),
    "the data set moves to the GPU, pinned": Slip(
        item=MOVES,
        loader=SIZED.format("pin_memory=True"),
        wants=("leave .cuda() and .to(...) out of it",),
    ),
    "half in, float weights": Slip(
        step="x = x.half()", where="nets.py:35", wants=("one precision throughout",)
    ),
    "too large a batch": Slip(
        init="self.wide = nn.Linear(8, 2_000_000)",
        step="x = x.repeat(4000, 1)\nreturn self.wide(x).relu().mean()",
        where="nets.py:35",
        wants=("of the whole GPU: look at the shapes", "micro_batch_size=16: half as many"),
    ),
    "a second GPU that is not there": Slip(
        step="x = x.to('cuda:1')",
        where="nets.py:34",
        wants=(f'{ONE}: write self.device for "cuda:1"',),
    ),
    "more GPUs than there are": Slip(
        words=("--gpus", "2"), wants=("2 ranks on this machine and 1 GPU", TO_CPU)
    ),
    "more nodes than GPUs": Slip(
        words=("--nodes", "2"), wants=("2 ranks on this machine and 1 GPU", TO_CPU)
    ),
    "a generator on the GPU": Slip(
        loader="g = torch.Generator(device='cuda')\n" + SIZED.format("shuffle=True, generator=g"),
        wants=("write torch.Generator() for it",),
    ),
    "a generator on the CPU": Slip(
        step="g = torch.Generator()\nx = x + torch.randn(x.shape, device=self.device, generator=g)",
        where="nets.py:35",
        wants=('write torch.Generator("cuda")',),
    ),
    "weights of a machine with four GPUs": Slip(
        init=OF_FOUR, where="nets.py:34", wants=('map_location="cpu"',)
    ),
    "a script whose batch is not moved": Slip(
        script=RAW.format(DEVICE, "pass"),
        where="train.py:11",
        wants=("x and y are on cpu and model on cuda:0: write x, y = x.to(device), y.to(device)",),
    ),
    "a script whose labels are not moved": Slip(
        script=RAW.format(DEVICE, "x = x.to(device)"),
        where="train.py:11",
        wants=("y is on cpu and model on cuda:0: write y = y.to(device) in front of it",),
    ),
    "a script for a second GPU": Slip(
        script=RAW.format('device = "cuda:1"', MOVED),
        where="train.py:6",
        wants=(f'{ONE}: write "cuda" for "cuda:1"',),
    ),
    "a script of two ranks": Slip(
        script=RAW.format(RANKS.format("LOCAL_RANK"), MOVED),
        words=("--gpus", "2"),
        wants=(
            f"2 ranks on this machine and 1 GPU: {TO_CPU}",
            f"{ONE}, and LOCAL_RANK is 1: start it with --gpus 1",
        ),
    ),
    "a script of two nodes": Slip(
        script=RAW.format(RANKS.format("RANK"), MOVED),
        words=("--nodes", "2"),
        wants=(f"{ONE}, and RANK is 1: write LOCAL_RANK for it, which is 0",),
    ),
    "a script that hides its GPU": Slip(
        script=RAW.format('os.environ["CUDA_VISIBLE_DEVICES"] = "5"\ndevice = "cuda"', MOVED),
        wants=("the script sets CUDA_VISIBLE_DEVICES to '5' (train.py:5)", "leave that out"),
    ),
    "a script out of memory": Slip(
        script=RAW.format(DEVICE, f"{MOVED}\n    kept = torch.empty(2**41, device=device)"),
        where="train.py:11",
        wants=("ran out of GPU memory", "of the whole GPU: look at the shapes"),
    ),
}
