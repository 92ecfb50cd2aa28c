from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ADAPTER, private_uses

ROOT = Path(__file__).parents[1]
FORBIDDEN = """
import os, torch._dynamo
import torch as t, torch.nn as nn
from torch._C import Store
from torch.utils.data._utils.fetch import Fetcher
from lightning import _Loop as Loop
from hpc_train.config import _own
from . import _sibling

class Mine(nn.Module):
    _limit = 3

    def __init__(self, other):
        super().__init__()
        self._size = other._size + self._limit
        self.x = other._hidden
        self._inherited()
        super()._size()
        hasattr(other, "_secret"), getattr(other, "_size", 0), getattr(other, "public")
        object.__setattr__(other, "_iterator", None)
        t._size, other.fit_loop.run(), __name__, other.__class__, os._exit
        for _ in range(3): _counted = 1
"""


def test_names_private_to_a_library_are_found_and_a_files_own_are_not(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(FORBIDDEN)
    assert [line.removeprefix(f"{file}:") for line in private_uses([file])] == [
        "2: import os, torch._dynamo",
        "4: from torch._C import Store",
        "5: from torch.utils.data._utils.fetch import Fetcher",
        "6: from lightning import _Loop as Loop",
        "16: other._hidden",
        "17: self._inherited",
        "18: super()._size",
        "19: hasattr(other, '_secret')",
        "20: object.__setattr__(other, '_iterator', None)",
        "21: other.fit_loop",
        "21: t._size",
    ]


def test_the_adapter_alone_may_use_them(tmp_path: Path) -> None:
    for folder in (ADAPTER, ADAPTER.parent):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "made.py").write_text("x._y\n")
    made = sorted(tmp_path.rglob("*.py"))
    assert private_uses(made) == [f"{tmp_path / ADAPTER.parent / 'made.py'}:1: x._y"]


def test_lightning_is_imported_in_one_place_and_by_the_examples() -> None:
    imports = re.compile(r"^\s*(import|from) (pytorch_)?lightning(_fabric)?\b", re.MULTILINE)
    files = [
        path for path in (ROOT / "hpc_train").rglob("*.py") if imports.search(path.read_text())
    ]
    elsewhere = {path for path in files if path.parent.name != "examples"}
    assert elsewhere == {ROOT / ADAPTER / "lightning.py"}


@pytest.mark.slow
def test_the_package_uses_none_outside_the_adapter() -> None:
    assert private_uses(sorted((ROOT / "hpc_train").rglob("*.py"))) == []


@pytest.mark.slow
def test_no_module_of_the_quick_tests_imports_torch() -> None:
    collected = [sys.executable, "-m", "pytest", "--quick", "--collect-only"]
    done = subprocess.run(collected, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
