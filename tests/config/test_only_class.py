"""A class whose new name is not near: the one of its kind in the module is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

NETS = """\
import torch
import pytorch_lightning as pl
from torch.utils.data import DataLoader
class _Layer(torch.nn.Module): ...
class Encoder(pl.LightningModule):
    def training_step(self, batch, batch_idx): return batch.mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Store(pl.LightningDataModule):
    def train_dataloader(self): return DataLoader(torch.zeros(8, 1))
def make(): ...
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {{class_path: nets.{model}}}
data: {{class_path: nets.{data}}}
"""


def told(folder: Path, nets: str, model: str = "Encoder", data: str = "Store") -> list[str]:
    write(folder, nets, "nets.py")
    path = write(folder, CONFIG.format(model=model, data=data))
    with pytest.raises(ConfigError) as caught:
        api.load(path)
    return [it.hint for it in (caught.value, *caught.value.others)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_only_one_of_its_kind_is_meant_whatever_its_name(tmp_path: Path) -> None:
    model = "did you mean 'nets.Encoder'? It is the only LightningModule there"
    data = "did you mean 'nets.Store'? It is the only LightningDataModule there"
    assert told(tmp_path, NETS, "Xyz", "Torch") == [model, data]


def test_a_base_that_trains_by_itself_may_be_meant_as_well(tmp_path: Path) -> None:
    """The derived class was told as the only one, and the base had the new name."""
    more = NETS.replace("class Store", "class Deep(Encoder): ...\nclass Store")
    assert told(tmp_path, more, "Xyz") == ["it has Encoder, Deep, make"]
    assert told(tmp_path, more, "Encodr") == ["did you mean 'nets.Encoder'?"]


def test_a_base_of_it_that_cannot_train_is_not_meant(tmp_path: Path) -> None:
    step = "    def training_step(self, batch, batch_idx): return batch.mean()\n"
    deep = f"class Deep(Encoder):\n{step}class Store"
    more = NETS.replace(step, "").replace("class Store", deep)
    assert told(tmp_path, more, "Xyz") == [
        "did you mean 'nets.Deep'? It is the only LightningModule there"
    ]


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ("class Other(pl.LightningModule): ...\n", "it has Encoder, Other, make"),
        ("class Hidden(unknown_base()): ...\n", "it has Encoder, Hidden, make"),  # it may be one
        ("class Xy(pl.LightningModule): ...\n", "did you mean 'nets.Xy'?"),  # a near one
    ],
)
def test_of_several_none_is_said_to_be_meant(more: str, hint: str, tmp_path: Path) -> None:
    assert told(tmp_path, f"{NETS}{more}", "Xyz") == [hint]
