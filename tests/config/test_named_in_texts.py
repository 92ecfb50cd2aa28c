"""A class that is named as a text where an object of it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError

CONFIG = """\
name: x
global_batch_size: 8
model:
  class_path: nets.Net
data:
  class_path: sets.Data
  init_args:
    transform: %s
trainer: {accelerator: cpu}
"""
NETS = """\
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def training_step(self, batch, batch_idx): return self.loss(batch)
    def configure_optimizers(self): return None
"""
SETS = """\
import torch
from pytorch_lightning import LightningDataModule

class Scale:
    def __init__(self, k=2.0): self.k = k
    def __call__(self, x): return x * self.k
class Crop:
    def __init__(self, size, *, pad, fill=0): self.size = size
    def __call__(self, x): return x
class Layer(torch.nn.Module):
    def forward(self, x): return x
class Encoder:
    def __init__(self, width): self.width = width
def double(x): return 2 * x

class Toy:
    def __init__(self, count, transform=None, label=0):
        self.count, self.label = count, label
        self.transform = transform
    def __getitem__(self, i):
        if self.transform is not None:
            return self.transform(i)
        return i

class Data(LightningDataModule):
    def __init__(self, transform=None):
        super().__init__()
        self.transform = transform
    def train_dataloader(self):
        return %s
"""
DIRECT = SETS % "[self.transform(it) for it in range(3)]"
HANDED_ON = SETS % "Toy(384, self.transform)"


def refusal(folder: Path, sets: str, text: str, *typed: str) -> str:
    (folder / "nets.py").write_text(NETS)
    (folder / "sets.py").write_text(sets)
    file = folder / "cfg.yaml"
    file.write_text(CONFIG % text)
    try:
        check(load(file, typed), workdir=folder)
    except ConfigError as error:
        return f"{error.message} | {error.hint}".replace(f"{file}:", "")
    return ""


@pytest.mark.parametrize(
    ("sets", "call"),
    [
        (DIRECT, "Data calls (line 30)"),
        (HANDED_ON, "Toy calls (line 22)"),
        (SETS % "Toy(384, transform=self.transform)", "Toy calls (line 22)"),
        (
            DIRECT.replace(
                "self.transform = transform\n    def train",
                "self.save_hyperparameters()\n    def train",
            ).replace("[self.transform", "[self.hparams.transform"),
            "Data calls (line 30)",
        ),
    ],
)
@pytest.mark.parametrize(
    ("named", "form"),
    [
        ("sets.Scale", "{class_path: sets.Scale}"),
        ("sets.Layer", "{class_path: sets.Layer}"),
        ("sets.Crop", "{class_path: sets.Crop, init_args: {size: ..., pad: ...}}"),
        ("torch.nn.Identity", "{class_path: torch.nn.Identity}"),
    ],
)
def test_the_class_is_told_in_the_form_that_makes_the_object(
    tmp_path: Path, sets: str, call: str, named: str, form: str
) -> None:
    said = refusal(tmp_path, sets, named)
    what = f"8: data.init_args.transform is the text {named!r}, which {call}"
    assert said == f"{what} | write transform: {form}"
    if "..." not in form:
        assert refusal(tmp_path, sets, form) == ""


def test_what_was_typed_is_told_as_it_is_typed(tmp_path: Path) -> None:
    said = refusal(tmp_path, DIRECT, "null", "data.init_args.transform=sets.Scale")
    word = "data.init_args.transform={class_path: sets.Scale}"
    assert said.endswith(f"| write '{word}'")
    assert refusal(tmp_path, DIRECT, "null", word) == ""


@pytest.mark.parametrize(
    "sets",
    [
        SETS % "made_of(self.transform)",  # another file's function may read the text
        SETS % "Toy(384, label=self.transform)",
        SETS % "Toy(384, 0, self.transform)",
        SETS % "Toy(*self.sizes, self.transform)",
        SETS % "self.scaler.transform(3)",  # another object's method of that name
        DIRECT.replace(
            "self.transform = transform\n    def train",
            "self.transform = getattr(torch, transform)\n    def train",
        ),
        DIRECT.replace(
            "        self.transform = transform\n    def train",
            "        if isinstance("
            "transform, str): transform = eval(transform)\n        self.transform ="
            " transform\n    def train",
        ),
        DIRECT.replace(
            "        self.transform = transform\n    def train",
            "        setattr(self, 'transform', made_of(transform))\n    def train",
        ),
        DIRECT.replace("    def train", "    def transform(self, x): return x\n    def train"),
        DIRECT.replace("transform=None):\n        super", "transform: str = ''):\n        super"),
        DIRECT.replace("transform=None):\n        super", "transform='x'):\n        super"),
        SETS % "[self.transform() for it in range(3)]",  # an object is made there
        SETS % "[TABLE[self.transform](it) for it in range(3)]",
        HANDED_ON.replace("class Toy:", "@wrapped\nclass Toy:"),
    ],
)
def test_a_text_that_the_class_may_work_with_is_taken(tmp_path: Path, sets: str) -> None:
    assert refusal(tmp_path, sets, "sets.Scale") == ""


@pytest.mark.parametrize("text", ["sets.Encoder", "sets.double", "relu", "sets.Absent", "a/b.c"])
def test_a_text_that_names_nothing_to_be_called_so_is_taken(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, DIRECT, text) == ""
