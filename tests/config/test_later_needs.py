"""What a training meets later: a package of an export, masks of a resume, a strategy's name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.fit import onnx_exports
from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
import torch
HEAD
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def training_step(self, batch, batch_idx):
        return batch.sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
    def on_train_end(self):
        ENDS
class Data(LightningDataModule):
    def train_dataloader(self): return [1]
"""


def notes(folder: Path, trainer: str = "", head: str = "", ends: str = "pass") -> list[str]:
    write(folder, NETS.replace("HEAD", head).replace("ENDS", ends), "nets.py")
    more = f"trainer: {{max_epochs: 1{trainer}}}\n"
    said = api.load(write(folder, MINIMAL + more)).notes
    return [it.replace(f"{folder}/", "") for it in said]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


EXPORT = 'torch.onnx.export(self, (torch.ones(1),), "x.onnx"'


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (f"{EXPORT})", True),
        (f"with torch.no_grad(): {EXPORT}, opset_version=18)", True),
        (f"{EXPORT}, dynamo=False)", False),
        (f"{EXPORT}, **self.given)", False),
        (f"try: {EXPORT})\n        except ImportError: pass", False),
        (f"if self.exports: {EXPORT})", False),
        ('torch.export.save(self, "x.pt2")', False),
    ],
)
def test_an_export_without_its_package_is_noted_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, told: bool
) -> None:
    monkeypatch.setattr(onnx_exports, "version", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(onnx_exports, "find_module", lambda *_: (None, ""))
    found = [it for it in notes(tmp_path, ends=ends) if "onnxscript" in it]
    said = "nets.py:9 calls torch.onnx.export, for which onnxscript is needed, which is not"
    assert found == ([f"{said} installed: pip install onnxscript"] if told else [])


def test_with_the_package_or_an_older_torch_nothing_is_said_of_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "", "onnxscript.py")
    monkeypatch.setattr(onnx_exports, "version", lambda _: "2.13.0+cpu")
    assert not [it for it in notes(tmp_path, ends=f"{EXPORT})") if "onnxscript is" in it]
    (tmp_path / "onnxscript.py").unlink()
    monkeypatch.setattr(onnx_exports, "find_module", lambda *_: (None, ""))
    monkeypatch.setattr(onnx_exports, "version", lambda _: "2.8.1")
    assert not [it for it in notes(tmp_path, ends=f"{EXPORT})") if "onnxscript is" in it]
    monkeypatch.setattr(onnx_exports, "version", lambda _: "2.13.0")
    config = write(tmp_path, f"{MINIMAL}env: {{conda: x}}\n")
    elsewhere = onnx_exports.notes_on_exports(load(config), tmp_path, sys.path)
    assert not [*elsewhere]


PRUNES = ", callbacks: [{class_path: %s.ModelPruning, init_args: {pruning_fn: l1_unstructured%s}}]"
MASKS = "has masks that are in no checkpoint"
LIGHTNINGS = "pytorch_lightning.callbacks"


@pytest.mark.parametrize(
    ("more", "told"),
    [("", 1), (", amount: 0.3", 1), (", make_pruning_permanent: false", 0)],
)
def test_masks_that_no_checkpoint_has_are_noted(tmp_path: Path, more: str, told: int) -> None:
    found = [it for it in notes(tmp_path, PRUNES % (LIGHTNINGS, more)) if MASKS in it]
    assert len(found) == told
    assert all(it.startswith("cfg.yaml:5: trainer.callbacks.0: ModelPruning has") for it in found)


def test_masks_that_no_new_model_has_a_place_for_are_noted(tmp_path: Path) -> None:
    more = ", make_pruning_permanent: false"
    (found,) = (it for it in notes(tmp_path, PRUNES % (LIGHTNINGS, more)) if "Pruning" in it)
    assert "no attempt goes on from it; leave make_pruning_permanent out" in found


def test_a_class_of_ones_own_of_that_name_is_not_noted(tmp_path: Path) -> None:
    head = f"from {LIGHTNINGS} import Callback\nclass ModelPruning(Callback):\n"
    head += "    def __init__(self, pruning_fn): ..."
    assert not [it for it in notes(tmp_path, PRUNES % ("nets", ""), head) if MASKS in it]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('ModelPruning("l1_unstructured")', 1),
        ('pl.callbacks.ModelPruning("l1_unstructured", amount=0.5)', 1),
        ('ModelPruning("l1_unstructured", make_pruning_permanent=False)', 0),
        ('own.ModelPruning("l1_unstructured")', 0),
    ],
)
def test_a_scripts_masks_are_noted_with_the_line(tmp_path: Path, call: str, told: int) -> None:
    text = f"import own\nimport pytorch_lightning as pl\nfrom {LIGHTNINGS} import ModelPruning\n"
    text += f"trainer = pl.Trainer(max_epochs=1, callbacks=[{call}])\ntrainer.fit(own.net)\n"
    write(tmp_path, "", "own.py")
    script = write(tmp_path, text, "train.py")
    found = [it for it in api.load(script, nodes=1, gpus=1, time="0:10:00").notes if MASKS in it]
    assert len(found) == told
    assert all("train.py:4 makes a ModelPruning, which has masks" in it for it in found)


@pytest.mark.parametrize(
    ("strategy", "head", "told"),
    [
        ("abc", "", True),
        ("my_own_one", "import json", True),
        ("auto", "", False),
        ("ddp", "", False),
        ("fsdp", "", False),
        ("abc", "from pytorch_lightning.strategies import StrategyRegistry", False),
        ("abc", "import registering", False),
        ("abc", "import lightning_addon", False),
        ("abc", "import importlib; importlib.import_module('a' + 'b')", False),
    ],
)
def test_a_strategy_that_nobody_registers_is_noted(
    tmp_path: Path, strategy: str, head: str, told: bool
) -> None:
    register = "from pytorch_lightning.strategies import StrategyRegistry as R\n"
    write(tmp_path, register, "registering.py")
    write(tmp_path, "", "lightning_addon.py")
    found = [
        it for it in notes(tmp_path, f", strategy: {strategy}", head) if "trainer.strategy is" in it
    ]
    said = f"cfg.yaml:5: trainer.strategy is {strategy!r}, which Lightning itself does not know"
    assert len(found) == told
    assert all(it.startswith(f"{said} (ddp, fsdp, deepspeed, ...): write one") for it in found)


def test_a_strategy_of_deepspeeds_is_known_by_each_of_its_names(tmp_path: Path) -> None:
    for name in ("deepspeed_stage_3_offload", "deepspeed_stage_3_offload_nvme"):
        with pytest.raises(ConfigError, match=f"is {name}, and deepspeed is not installed"):
            notes(tmp_path, f", strategy: {name}")
