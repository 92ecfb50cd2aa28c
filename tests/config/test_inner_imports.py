"""A package that a method of each training imports, and that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.python_text.inner_imports import missing_in_methods
from tests.config.files import MINIMAL, write

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def training_step(self, batch, batch_idx):
        "Doc."
        %s
    def export(self):
        import not_there_at_all
class Data(LightningDataModule):
    def train_dataloader(self): return []
"""


def notes(folder: Path, line: str) -> list[str]:
    write(folder, NETS % line, "nets.py")
    path = [str(folder), *sys.path]
    return [*missing_in_methods(load(write(folder, MINIMAL)), path)]


def test_a_package_that_is_missing_is_noted_with_its_line(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, "from not_there_at_all import create")
    assert note.startswith(
        "nets.py:5 imports not_there_at_all, as nets.Net.training_step is called, and it is not"
        " installed: pip install not_there_at_all"
    )


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "import json, torch.nn, nets",
        "from . import not_there_at_all",
        "if batch: import not_there_at_all",
        "try: import not_there_at_all\n        except ImportError: pass",
        "return 1; import not_there_at_all",
        "raise ValueError; import not_there_at_all",
    ],
)
def test_what_is_there_or_may_not_be_reached_is_not_noted(tmp_path: Path, line: str) -> None:
    assert notes(tmp_path, line) == []
