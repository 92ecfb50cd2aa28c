"""A file of a package that is started by itself: the package stays as it is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

TRAIN = "from .model import build\nprint(build(), __name__)\n"
START = "or submit a file run_train.py beside pack/, of one line: "
RUNS = 'import runpy; runpy.run_module("pack.train", run_name="__main__")'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "pack", "", "__init__.py")
    write(tmp_path / "pack", "from .layers import lin\ndef build(): return lin\n", "model.py")
    write(tmp_path / "pack", "lin = 3\n", "layers.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fix(name: str, text: str, *words: str) -> str:
    write(Path.cwd(), text, name)
    with pytest.raises(ConfigError, match="a relative import, and ") as caught:
        api.load(name, *words)
    return caught.value.hint


def test_it_is_told_the_absolute_import_and_the_file_that_starts_the_module(root: Path) -> None:
    path = f"and add env.variables.PYTHONPATH={root}"
    assert fix("pack/train.py", TRAIN) == (
        f"write from pack.model import build (line 1), {path}; {START}{RUNS}"
    )


def test_what_is_told_is_taken_and_runs(root: Path) -> None:
    hint = fix("pack/train.py", TRAIN)
    word = shlex.split(re.findall(r"add (\S+);", hint)[0])
    write(root, TRAIN.replace(".model", "pack.model"), "pack/train.py")
    api.load("pack/train.py", *word)
    write(root, TRAIN, "pack/train.py")
    write(root, f"{RUNS}\n", "run_train.py")
    api.load("run_train.py")
    ran = subprocess.run([sys.executable, "run_train.py"], capture_output=True, text=True)
    assert ran.stdout == "3 __main__\n"


def test_all_its_relative_imports_are_told(root: Path) -> None:
    write(root, "", "pack/sub/__init__.py")
    text = "from . import a\nfrom ..model import build as b\nfrom .a import (\n    c,\n    d,\n)\n"
    hint = fix("pack/sub/go.py", text)
    assert hint.startswith(
        "write from pack.sub import a (line 1), from pack.model import build as b (line 2), from"
        " pack.sub.a import c, d (line 3), and add "
    )
    assert 'run_module("pack.sub.go"' in hint
    hint = fix("pack/sub/go.py", f"{text}from . import *\n")
    assert "c, d (line 3), and the others alike, and add " in hint


def test_a_folder_whose_files_import_each_other_so_is_one_as_well(root: Path) -> None:
    (root / "pack" / "__init__.py").unlink()
    assert START in fix("pack/train.py", TRAIN)
    write(root, "lin = 3\n", "pack/model.py")
    assert fix("pack/train.py", TRAIN) == "write from model import build"


def test_one_that_is_imported_without_its_package_is_told_its_name(root: Path) -> None:
    assert fix("pack/train.py", "from model import build\n") == (
        f"write pack.model for model where it is imported, and add env.variables.PYTHONPATH={root}"
    )


def test_a_folder_that_can_be_no_package_is_told_as_before(root: Path) -> None:
    (root / "pack").rename(root / "my-pack")
    assert fix("my-pack/train.py", TRAIN) == "write from model import build"


def test_a_name_that_is_taken_is_not_told(root: Path) -> None:
    write(root, "", "run_train.py")
    assert "submit a file run_train_2.py beside pack/" in fix("pack/train.py", TRAIN)
