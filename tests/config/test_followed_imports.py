"""What packages of a project import at their top, told before the queue of the script."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

ABSENT = "no_such_root"
GONE = f"imports '{ABSENT}', which is not installed"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "", "nets/__init__.py")
    write(tmp_path, "SIZE = 2\n", "nets/whole.py")
    return tmp_path


def said_of(folder: Path, text: str, *words: str, name: str = "scripts/train.py") -> str:
    """The refusal of a script, without the test's folder; empty where it is taken."""
    write(folder, f"{text}\nprint(1)\n", name)
    try:
        api.load(name, *words, gpus=1)
    except ConfigError as error:
        return error.message.replace(f"{folder}/", "")
    return ""


PATH = "env.variables.PYTHONPATH=."


@pytest.mark.parametrize("line", ["from nets import part", "from nets import whole, part"])
def test_a_part_that_is_imported_from_its_package_is_followed(project: Path, line: str) -> None:
    write(project, f"import os\nimport {ABSENT}.x\n", "nets/part.py")
    told = f"nets/part.py:2: {GONE}"
    assert said_of(project, line, PATH) == told
    assert said_of(project, line, name="train.py") == told
    assert said_of(project, line, f"env.variables.PYTHONPATH=/nowhere:{project}") == told


@pytest.mark.parametrize(
    "line",
    [
        "import nets.deep.part",
        "from nets.deep.part import x",
        "from nets.deep import part",
        "from nets import deep",
        "from nets.first import x",
    ],
)
def test_packages_and_what_they_import_are_followed(project: Path, line: str) -> None:
    write(project, f"import {ABSENT}\n", "nets/deep/__init__.py")
    write(project, "x = 1\n", "nets/deep/part.py")
    write(project, "from .second import x\n", "nets/first.py")
    write(project, "from . import third\nx = third.x\n", "nets/second.py")
    write(project, "from nets.deep.part import x\n", "nets/third.py")
    assert said_of(project, line, PATH) == f"nets/deep/__init__.py:1: {GONE}"


def test_a_folder_without_init_is_followed(project: Path) -> None:
    write(project, "from torch._six import inf\n", "parts/data/utils.py")
    said = said_of(project, "from parts.data.utils import inf", PATH)
    assert said.startswith("parts/data/utils.py:1: imports 'torch._six', which torch has no more")
    assert said_of(project, "from parts.data import utils", PATH) == said


def test_a_script_that_changes_the_path_later_has_its_modules_followed(project: Path) -> None:
    write(project, f"import {ABSENT}\n", "nets/part.py")
    text = "from nets.part import x\nimport sys\nsys.path.append('.')"
    assert said_of(project, text, name="train.py") == f"nets/part.py:1: {GONE}"


def test_a_name_that_a_package_has_not_is_told(project: Path) -> None:
    said = said_of(project, "from nets.whole import SIZES", PATH)
    assert said == "scripts/train.py:1: imports 'SIZES' from nets.whole, which has no such name"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("nets/part.py", f"try:\n    import {ABSENT}\nexcept ImportError:\n    {ABSENT} = None\n"),
        ("nets/part.py", f"if False:\n    import {ABSENT}\n"),
        ("nets/part.py", f"import typing\nif typing.TYPE_CHECKING:\n    import {ABSENT}\n"),
        ("nets/part.py", f"def later():\n    import {ABSENT}\n"),
        ("nets/part.py", f"import sys\nsys.path.append('lib')\nimport {ABSENT}\n"),
        ("nets/other.py", f"import {ABSENT}\n"),
        ("nets/__init__.py", "import sys\nsys.path.append('lib')\n"),
        ("nets/part.py", "import __main__\n"),
        ("nets/part.py", "from . import bare\nfrom nets import built\n"),
        ("nets/__init__.py", "from .whole import SIZE as part\n"),
    ],
)
def test_what_may_not_fail_is_taken(project: Path, file: str, text: str) -> None:
    is_init = file == "nets/__init__.py"
    write(project, f"import {ABSENT}\n" if is_init else "", "nets/part.py")
    write(project, text, file)
    write(project, "", "nets/bare/deep.py")
    write(project, "", f"nets/built{EXTENSION_SUFFIXES[0]}")
    assert said_of(project, "from nets import part", PATH) == ""


def test_a_condition_around_the_import_of_the_part_leaves_it_open(project: Path) -> None:
    write(project, f"import {ABSENT}\n", "nets/part.py")
    line = "try:\n    from nets import part\nexcept ImportError:\n    part = None"
    assert said_of(project, line, PATH) == ""
    assert said_of(project, "def late():\n    from nets import part", PATH) == ""


def test_packages_of_others_on_that_path_are_not_looked_into(project: Path) -> None:
    write(project, f"import {ABSENT}\n", "venv/lib/site-packages/theirs/__init__.py")
    path = "env.variables.PYTHONPATH=venv/lib/site-packages"
    assert said_of(project, "import theirs", path) == ""


def test_a_copy_of_lightning_on_that_path_is_taken(project: Path) -> None:
    write(project, "class Trainer: ...\n", "copy/pytorch_lightning/__init__.py")
    text = "from pytorch_lightning import Trainer"
    assert said_of(project, text, "env.variables.PYTHONPATH=copy") == ""


def test_a_package_that_takes_names_of_its_parts_is_no_circle(project: Path) -> None:
    write(project, "from .kinds import Own\nSIZE = 1\n", "nets/__init__.py")
    write(project, "from .deep import Inner\nclass Own(Inner): ...\n", "nets/kinds.py")
    write(project, "import nets.whole\nclass Inner: ...\n", "nets/deep.py")
    for line in ("import nets.kinds", "from nets import deep", "from nets.deep import Inner"):
        assert said_of(project, line, PATH) == ""
