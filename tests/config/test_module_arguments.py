"""A mapping for an argument that is a module of torch's: it needs its class."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
from torch import nn
from torch.nn import Module

class Encoder(nn.Module):
    def __init__(self, hidden: int = 4, deep: bool = False): ...
{more}
class Net(pl.LightningModule):
    def __init__(self, encoder: {annotation}, lr: float = 0.1): ...
    def training_step(self, batch): return self.layer(batch)
    def configure_optimizers(self): return made(self)

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]

made = print
"""


def said_of(folder: Path, value: str, annotation: str = "nn.Module", more: str = "") -> str:
    write(folder, NETS.format(annotation=annotation, more=more), "nets.py")
    config = MINIMAL.replace("nets.Net", f"nets.Net, init_args: {{encoder: {value}}}")
    try:
        api.load(write(folder, config))
    except ConfigError as error:
        return f"{error.message.rpartition('model.')[2]} -> {error.hint}"
    return ""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("annotation", ["nn.Module", "Module", "nn.Module | None"])
def test_arguments_without_their_class_are_refused_with_it(tmp_path: Path, annotation: str) -> None:
    assert said_of(tmp_path, "{hidden: 8}", annotation) == (
        f"init_args.encoder is {{hidden: 8}}, and nets.Net takes {annotation} -> write encoder:"
        " {class_path: nets.Encoder, init_args: {hidden: 8}}"
    )


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ("{hidden: 8}", "class Other(nn.Module):\n    def __init__(self, hidden): ...\n"),
        ("{width: 8}", ""),
    ],
)
def test_where_no_one_class_takes_them_none_is_named(tmp_path: Path, value: str, more: str) -> None:
    assert said_of(tmp_path, value, more=more).endswith(
        f"write encoder: {{class_path: CLASS, init_args: {value}}}"
    )


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("{class_path: nets.Encoder, init_args: {hidden: 8}}", "nn.Module"),
        ("{class_path: torch.nn.Identity}", "nn.Module"),
        ("{_target_: nets.Encoder, hidden: 8}", "nn.Module"),
        ("null", "nn.Module | None"),
        ("{hidden: 8}", "dict"),
        ("{hidden: 8}", "dict | nn.Module"),
        ("{hidden: 8}", "object"),
    ],
)
def test_what_is_an_object_or_may_be_a_mapping_is_taken(
    tmp_path: Path, value: str, annotation: str
) -> None:
    assert "takes" not in said_of(tmp_path, value, annotation)
