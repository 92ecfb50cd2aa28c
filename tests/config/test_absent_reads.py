"""A file that a script surely reads and that is not there: noted before the queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import told_of_script, write

READS = """\
import os, json, torch
import numpy as np
import pandas as pd
from pathlib import Path
FILE = "own.txt"
def main():
    text = {}
if __name__ == "__main__":
    main()
"""
READ = "open('input.txt', 'r').read()"
told = partial(told_of_script, about=" opens ", gpus=1)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "", "pandas.py")
    monkeypatch.chdir(tmp_path)


def notes(folder: Path, text: str, *words: str) -> list[str]:
    refused, found = told(folder, text, *words)
    assert refused is None
    return found


@pytest.mark.parametrize(
    ("read", "file"),
    [
        (READ, "input.txt"),
        ("open('data/input.txt').read()", "data/input.txt"),
        ("open('./input.txt', mode='rb')", "./input.txt"),
        ("open(FILE)", "own.txt"),
        ("Path('input.txt').read_text()", "input.txt"),
        ("Path('input.txt').open()", "input.txt"),
        ("json.load(open('input.json'))", "input.json"),
        ("None\n    with open('a.txt') as stream:\n        stream.read()", "a.txt"),
        ("pd.read_csv('train.csv', sep=';')", "train.csv"),
        ("np.load('x.npy')", "x.npy"),
        ("torch.load('x.pt')", "x.pt"),
    ],
)
def test_it_is_noted_with_the_folder(tmp_path: Path, read: str, file: str) -> None:
    (note,) = notes(tmp_path, READS.format(read))
    at = 8 if "with" in read else 7
    said = f"train.py:{at} opens {file}, which is not in {tmp_path}, where the job starts: put it"
    assert note == f"{said} there, or write the whole path"
    write(tmp_path, "x", file)
    assert notes(tmp_path, READS.format(read)) == []


@pytest.mark.parametrize(
    "read",
    [
        "open('/data/input.txt')",
        "open('~/input.txt')",
        "open(f'{os.getpid()}.txt')",
        "open('input.txt', 'w')",
        "open('input.txt', 'a+')",
        "open('input.txt', os.environ['MODE'])",
        "pd.read_csv('https://host/train.csv')",
        "open('input.txt') if os.getpid() else None",
        "None\n    if torch.x: open('input.txt')",
        "None\n    try: open('input.txt')\n    except FileNotFoundError: pass",
        "None\n    try: open('input.txt')\n    except Exception: pass",
        "os.path.exists('input.txt')\n    open('input.txt')",
        "os.system('make data')\n    open('input.txt')",
        "os.chdir('/data')\n    open('input.txt')",
        "download()\n    open('input.txt')",
        "open('input.txt', 'w')\n    open('input.txt')",
        "open(torch.name, 'w')\n    open('input.txt')",
        "pd.make().to_csv(torch.name)\n    pd.read_csv('input.csv')",
        "torch.save({}, torch.name)\n    torch.load('x.pt')",
        "Path(torch.name).write_text('x')\n    open('input.txt')",
        "make('input.txt')\n    open('input.txt')",
    ],
)
def test_what_may_be_there_by_then_is_not(tmp_path: Path, read: str) -> None:
    assert notes(tmp_path, READS.format(read)) == []


def test_another_file_that_is_written_changes_nothing(tmp_path: Path) -> None:
    saves = f"{READ}\n    path = os.path.join(torch.folder, 'model.pt')\n    torch.save({{}}, path)"
    assert len(notes(tmp_path, READS.format(saves))) == 1


def test_a_module_of_ones_own_may_bring_it(tmp_path: Path) -> None:
    text = READS.replace("import os", "import mine, os").format(READ)
    write(tmp_path, "def f(): pass\n", "mine.py")
    assert len(notes(tmp_path, text)) == 1
    write(tmp_path, "import subprocess\n", "mine.py")
    assert notes(tmp_path, text) == []


def test_nothing_is_said_where_lines_of_the_job_come_before(tmp_path: Path) -> None:
    assert notes(tmp_path, READS.format(READ), "env.setup=[make data]") == []


def test_one_beside_the_script_is_found(tmp_path: Path) -> None:
    write(tmp_path, "x", "sub/input.txt")
    write(tmp_path, READS.format(READ).replace("import pandas as pd\n", ""), "sub/train.py")
    (note,) = (it for it in api.load("sub/train.py", gpus=1).notes if " opens " in it)
    assert note.endswith("it is in sub: submit from there (cd sub), or write sub/input.txt")
