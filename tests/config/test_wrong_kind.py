"""A class of another kind than its key takes is told with how to make one of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.python_text.classes import check_class
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.checking import nets, refusal_in
from tests.config.files import MINIMAL, write

__all__ = ["nets"]

PLAIN = """\
import torch
from lightning.pytorch import LightningDataModule, LightningModule
class Net(torch.nn.Module): ...
class Lit(LightningModule): ...
class Set(torch.utils.data.Dataset): ...
def make_net(width=1): return Net(width)
def make_lit(): return Lit()
def make_some(name): return {"lit": Lit}[name]()
def make_either(plain): return Net() if plain else Lit()
"""


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("plain.Net", "is no", "derive it from pytorch_lightning.LightningModule, or name a cl"),
        ("both.Net", "is no", "both has Lit; or derive Net from lightning.pytorch.LightningModule"),
        ("both.make_net", "is a function that gives a Net, which is no", "both has Lit; or wr"),
        ("torch.nn.Linear", "is no", "write a LightningModule that has one, self.net = torch.nn.L"),
        (
            "torchvision.models.resnet18",
            "is a function that gives a module of torch's, which is no",
            "that has one, self.net = torchvision.models.resnet18(...), and name that",
        ),
        ("both.make_lit", "", ""),
        ("both.make_some", "", ""),
        ("both.make_either", "", ""),
    ],
)
def test_a_plain_module_of_torch_is_told_with_how_to_train_it(
    name: str, said: str, hint: str, nets: Path
) -> None:
    write(nets, "import torch\nclass Net(torch.nn.Module): ...\n", "plain.py")
    write(nets, PLAIN, "both.py")
    write(nets, "from .resnet import *\n", "site-packages/torchvision/models/__init__.py")
    write(nets, "", "site-packages/torchvision/__init__.py")
    resnet = "@handle()\ndef resnet18(weights=None): return ResNet()\n"
    write(nets, resnet, "site-packages/torchvision/models/resnet.py")
    arguments = ", init_args: {name: lit}" if name == "both.make_some" else ""
    arguments = ", init_args: {plain: true}" if name == "both.make_either" else arguments
    model = f"{{class_path: {name}{arguments}}}"
    path = [str(nets), str(nets / "site-packages"), *sys.path]
    loaded = load(write(nets, MINIMAL.replace("{class_path: nets.Net}", model)))
    if not said:
        check(loaded, workdir=nets, search_path=path)
        return
    with pytest.raises(ConfigError) as caught:
        check(loaded, workdir=nets, search_path=path)
    message = re.sub(r" \([\w/-]+\.py:\d+\)", "", caught.value.message.replace(f"{nets}/", ""))
    assert message == f"cfg.yaml:3: model.class_path: {name} {said} LightningModule"
    assert hint in caught.value.hint


def test_a_dataset_in_place_of_the_data_is_told_with_what_takes_it(nets: Path) -> None:
    write(nets, PLAIN, "both.py")
    lit, data = "{class_path: both.Lit}", "{class_path: both.Set}"
    hint = (
        "write a LightningDataModule whose train_dataloader returns DataLoader(both.Set(...), ...)"
    )
    assert refusal_in(nets, lit, data).hint == hint


@pytest.mark.parametrize(
    ("below", "fix"),
    [
        ("lr:0.05", "write a space behind the colon: lr: 0.05"),
        ("lr:0.05\n    width:3", "write a space behind each colon: lr: 0.05"),
        ("lr", "write name: value pairs"),
        ("http://a", "write name: value pairs"),
    ],
)
def test_arguments_that_are_no_pairs_are_told_with_their_own_line(
    nets: Path, below: str, fix: str
) -> None:
    error = refusal_in(nets, f"\n  class_path: nets.Net\n  init_args:\n    {below}")
    assert error.message.startswith("cfg.yaml:6: model.init_args is '"), error.message
    assert error.hint == fix


@pytest.mark.parametrize(
    ("written", "there"),
    [
        ("lightning.pytorch.callbacks.Early", "pytorch_lightning.callbacks.Early"),
        ("pytorch_lightning.callbacks.Early", "lightning.pytorch.callbacks.Early"),
    ],
)
def test_a_class_of_the_lightning_that_is_not_installed_is_told_as_that_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, there: str
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in ("lightning", "pytorch_lightning"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    package = there.removesuffix(".callbacks.Early")
    write(tmp_path, "class Early: ...\n", f"site/{package.replace('.', '/')}/callbacks.py")
    for folder in (tmp_path / "site").rglob("*"):
        if folder.is_dir():
            (folder / "__init__.py").touch()
    with pytest.raises(ConfigError) as caught:
        check_class(written, {}, search_path=[str(tmp_path), str(tmp_path / "site")])
    assert caught.value.message.startswith(f"there is no module '{written.partition('.')[0]}'")
    name = package.partition(".")[0]
    assert caught.value.hint == f"write {there}: Lightning is installed as {name} here"
    with pytest.raises(ConfigError) as caught:
        check_class(f"{written}s", {}, search_path=[str(tmp_path), str(tmp_path / "site")])
    assert "Lightning is installed" not in caught.value.hint


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("pl.callbacks.EarlyStopping", "write pytorch_lightning.callbacks.EarlyStopping"),
        ("src.callbacks.EarlyStopping", "write pytorch_lightning.callbacks.EarlyStopping"),
        ("src.callbacks.Hello", "did you mean 'callbacks.Hello'?"),
        ("src.callbacks.Helo", "did you mean 'callbacks.Hello'?"),
        ("pl.callbacks.Hello", "did you mean 'callbacks.Hello'?"),
        ("L.pytorch.callbacks.Timer", "write lightning.pytorch.callbacks.Timer"),
    ],
)
def test_a_class_that_a_file_of_ones_own_has_not_is_not_named_there(
    written: str, hint: str, tmp_path: Path
) -> None:
    write(tmp_path, "from pytorch_lightning import Callback\nclass Hello(Callback): ...\n",
          "callbacks.py")  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        check_class(written, {}, search_path=[str(tmp_path), *sys.path], wanted="Callback")
    assert caught.value.hint == hint
