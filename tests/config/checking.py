"""A project's modules, and what is refused of a config that names their classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.files import write

NETS = """\
import pytorch_lightning as pl
from torch import Tensor as Imported
from pytorch_lightning import LightningDataModule
try:
    import a_package_that_may_be_missing
except ImportError:
    pass

raise RuntimeError("this module must not be imported")

class Net(pl.LightningModule):
    def __init__(self, width, lr=0.1, *, depth: int = 2):
        pass

class Child(Net):
    pass

class Open(pl.LightningModule):
    def __init__(self, **kwargs):
        pass

class Foreign(Imported):
    pass

class Data(LightningDataModule):
    def __init__(self, batch_size, path="x"):
        pass

def make(width):
    return Net(width)

if True:
    class Hidden(pl.LightningModule):
        pass

class OpenData(LightningDataModule):
    def __init__(self, **kwargs):
        pass

class OwnStrategy(pl.strategies.Strategy):
    def __init__(self, **kwargs):
        pass
"""


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    write(tmp_path, NETS, "nets.py")
    return tmp_path


def check_in(
    folder: Path, model: str, data: str = "{class_path: nets.Data}", more: str = ""
) -> None:
    text = f"name: x\nglobal_batch_size: 8\nmodel: {model}\ndata: {data}\n{more}"
    check(load(write(folder, text)), workdir=folder)


def refusal_in(folder: Path, *arguments: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_in(folder, *arguments)
    error = caught.value
    assert "\n" not in str(error)
    told = ConfigError(error.message.replace(f"{folder}/", ""), error.hint)
    told.others = error.others
    return told
