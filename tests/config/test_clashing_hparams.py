"""An argument that model and data save with two values is refused before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

NETS = """\
import pytorch_lightning as pl
import torch

class Net(pl.LightningModule):
    def __init__(self, horizon: int = 12, lr: float = 0.1):
        super().__init__()
        MODEL
    def training_step(self, batch): return self(batch)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)

class Data(pl.LightningDataModule):
    def __init__(self, batch_size: int = 4, horizon: int = 12):
        super().__init__()
        DATA
    def train_dataloader(self): return [1]
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {OF_MODEL}}
data: {class_path: nets.Data, init_args: {OF_DATA}}
trainer: {accelerator: cpuTRAINER}
"""
SAVES = "self.save_hyperparameters()"
BOTH = "both save their arguments for the loggers (nets.py:7, nets.py:14), which Lightning refuses"
OR = "the same value, or self.save_hyperparameters(logger=False) in one of the two places"


def told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_model: str = "",
    of_data: str = "horizon: 6",
    *,
    model: str = SAVES,
    data: str = SAVES,
    trainer: str = "",
) -> str:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("MODEL", model).replace("DATA", data), "nets.py")
    text = CONFIG.replace("OF_MODEL", of_model).replace("OF_DATA", of_data)
    try:
        api.load(write(folder, text.replace("TRAINER", trainer)))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


def test_a_default_of_the_other_class_is_told_with_both_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tmp_path, monkeypatch) == (
        f"cfg.yaml:4: data.init_args.horizon is 6, and model has 12 by default: {BOTH} where they"
        f" differ -> write model.init_args.horizon=6, {OR}"
    )
    assert told(tmp_path, monkeypatch, "horizon: 6", "") == (
        f"cfg.yaml:3: model.init_args.horizon is 6, and data has 12 by default: {BOTH} where they"
        f" differ -> write data.init_args.horizon=6, {OR}"
    )


def test_two_values_that_are_written_are_told_with_both_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tmp_path, monkeypatch, "horizon: 3").startswith(
        "cfg.yaml:4: data.init_args.horizon is 6, and model.init_args.horizon 3: both save"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"of_model": "horizon: 6"},
        {"of_data": ""},
        {"of_data": "batch_size: 2"},
        {"model": "self.save_hyperparameters(logger=False)"},
        {"data": "self.save_hyperparameters(ignore=['horizon'])"},
        {"data": "self.horizon = horizon"},
        {"data": "horizon = 12; self.save_hyperparameters()"},
        {"data": "if horizon > 9: self.save_hyperparameters()"},
        {"data": "self.save_hyperparameters(); self.save_hyperparameters({'horizon': 12})"},
        {"trainer": "}\nloggers: []\nenv: {"},
        {"trainer": ", enable_autolog_hparams: false"},
    ],
)
def test_one_value_or_one_that_is_not_surely_saved_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    assert told(tmp_path, monkeypatch, **more) == ""  # type: ignore[arg-type]


def test_all_that_differ_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nets = NETS.replace("horizon: int = 12):", "horizon: int = 12, lr: float = 0.2):")
    write(tmp_path, nets.replace("MODEL", SAVES).replace("DATA", SAVES), "nets.py")
    text = CONFIG.replace("OF_MODEL", "lr: 0.3").replace("OF_DATA", "horizon: 6")
    with pytest.raises(ConfigError) as caught:
        api.load(write(tmp_path, text.replace("TRAINER", "")))
    messages = [it.message for it in (caught.value, *caught.value.others)]
    assert [it.partition(" is ")[0].rpartition(": ")[2] for it in messages] == [
        "model.init_args.lr",
        "data.init_args.horizon",
    ]
