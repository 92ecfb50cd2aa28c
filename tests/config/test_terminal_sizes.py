"""Lines that ask a terminal for its size: noted at submission, also of what a script imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import write

POPEN = "import os\n_, width = os.popen('stty size', 'r').read().split()\n"
SIZE = "shutil.get_terminal_size()"


def notes(folder: Path, text: str, helper: str = "") -> list[str]:
    write(folder, text, "train.py")
    write(folder, helper, "bar.py")
    return [it for it in api.load("train.py").notes if "terminal" in it]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_of_a_file_that_the_script_imports_is_told_with_its_place(tmp_path: Path) -> None:
    text = "from bar import show\nimport torch\nshow()\n"
    told = notes(tmp_path, text, f"{POPEN}def show(): pass\n")
    asks = "bar.py:2 asks a terminal for its size (stty size), which a job has not"
    assert told == [f"{asks}: write width = {SIZE}.columns, and import shutil"]
    write(tmp_path, f"{POPEN}def show(): pass\n", "src/bar.py")
    write(tmp_path, text, "src/train.py")
    assert any(it.startswith("src/bar.py:2 asks a") for it in api.load("src/train.py").notes)


@pytest.mark.parametrize(
    ("text", "write"),
    [
        ("import os\nw = os.get_terminal_size().columns", f"write {SIZE} for it"),
        ("from os import get_terminal_size as g\nprint(g()[0])", f"write {SIZE} for it"),
        (POPEN.replace("_,", "rows,"), f"write width, rows = {SIZE}, and"),
        (POPEN.replace("_, width", "rows, _"), f"write rows = {SIZE}.lines, and"),
        (POPEN.replace("_, width", "[_, w]"), f"write w = {SIZE}.columns, and"),
        ("import os\nw = int(os.popen('stty size').read().split()[1])", f"w = {SIZE}.columns"),
        ("import os\nh, w = map(int, os.popen('stty size').read().split())", f"w, h = {SIZE}"),
        ("import subprocess\ns = subprocess.check_output(['stty', 'size'])", f"write {SIZE}, and"),
        ("import os\nif __name__ == '__main__':\n    os.get_terminal_size()", f"write {SIZE}"),
    ],
)
def test_what_surely_ends_there_is_told_with_what_to_write(
    tmp_path: Path, text: str, write: str
) -> None:
    (told,) = notes(tmp_path, text)
    assert told.startswith("train.py:")
    assert write in told


@pytest.mark.parametrize(
    "text",
    [
        "import shutil\nw = shutil.get_terminal_size().columns",
        "from shutil import get_terminal_size\nget_terminal_size()",
        "import os\ntry:\n    w = os.get_terminal_size().columns\nexcept OSError:\n    w = 80",
        "import os, sys\nw = os.get_terminal_size()[0] if sys.stdout.isatty() else 80",
        "import os, sys\nw = sys.stdout.isatty() and os.get_terminal_size()",
        "import os, sys\nif sys.stdout.isatty():\n    w = os.get_terminal_size()[0]",
        "import os\ndef width():\n    return os.get_terminal_size()[0]\nprint(1)",
        "import os\nwidth = lambda: os.get_terminal_size()[0]\nprint(1)",
        "import os\nsize = os.popen('stty size').read()\nprint(size)",
        "import os\na, b = os.popen('git log -2').read().split()",
        "import bar\nprint(1)",
    ],
)
def test_what_goes_on_without_a_terminal_is_not(tmp_path: Path, text: str) -> None:
    inner = "if __name__ == '__main__':\n    import os\n    os.get_terminal_size()\n"
    assert notes(tmp_path, text, inner) == []
