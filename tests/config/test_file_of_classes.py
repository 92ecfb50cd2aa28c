"""The file of a model's class in a script's place: the config that names it, or what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

MODEL = (
    "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n    def forward(self): ...\n"
)
DATA = "class Digits(pl.LightningDataModule):\n    def setup(self, stage): ...\n"
CALL = "call what trains at its end, or submit "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hint_of(folder: Path, text: str, name: str = "forecast/model.py") -> str:
    write(folder, text, name)
    with pytest.raises(ConfigError) as caught:
        api.load(name)
    assert "starts none of them" in caught.value.message
    return caught.value.hint


def test_a_config_that_names_a_class_of_the_file_is_told(folder: Path) -> None:
    write(folder, "model: {class_path: forecast.model.Network}\n", "a.yaml")
    write(folder, "model:\n  class_path: forecast.model.Net\n", "configs/load it.yaml")
    told = "'configs/load it.yaml', which names its forecast.model.Net"
    assert hint_of(folder, MODEL) == f"{CALL}{told}"


def test_without_one_the_classes_are_named(folder: Path) -> None:
    names = "a config that names its classes: model: {class_path: forecast.model.Net}"
    assert hint_of(folder, MODEL) == f"{CALL}{names}"
    both = f"{names} and data: {{class_path: forecast.model.Digits}}"
    assert hint_of(folder, MODEL + DATA) == f"{CALL}{both}"


def test_of_other_classes_nothing_is_claimed(folder: Path) -> None:
    text = "class Net:\n    def go(self): ...\n"
    assert hint_of(folder, text) == f"{CALL}a config that names its classes: class_path: ..."
