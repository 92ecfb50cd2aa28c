"""Whether a class lacks a method, told from the text of its module and of its bases' modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.python_text.class_kind import lacks_method

BASES = """
import lightning.pytorch as L
from pytorch_lightning import LightningModule as Module

class WithTest(L.LightningModule):
    def test_step(self, batch): ...

class Without(Module):
    def training_step(self, batch): ...
"""
OWN = """
import pytorch_lightning as pl
import unknown_package
from torch import nn
from .bases import WithTest, Without
from pkg import bases as other
from pkg.bases import *

def decorated(cls): return cls

class Plain(pl.LightningModule): ...
class Inherits(WithTest): ...
class InheritsNothing(Without): ...
class ByModule(other.WithTest): ...
class Mixed(Without, WithTest): ...
class Assigned(pl.LightningModule):
    if True:
        test_step = print
@decorated
class Decorated(pl.LightningModule): ...
class FromElsewhere(unknown_package.Base): ...
class Own(Plain): ...
"""


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("Plain", True),
        ("Own", True),
        ("InheritsNothing", True),
        ("Inherits", False),
        ("ByModule", False),
        ("Mixed", False),
        ("Assigned", False),
        ("Decorated", False),  # the text does not tell
        ("FromElsewhere", False),
        ("NotThere", False),
    ],
)
def test_a_method_is_missed_where_the_text_tells(name: str, lacks: bool, tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "bases.py").write_text(BASES)
    (package / "own.py").write_text(OWN)
    path = [str(tmp_path), *sys.path]
    assert lacks_method(f"pkg.own.{name}", "test_step", path) is lacks
