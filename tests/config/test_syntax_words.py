"""A file that is no Python is told with what to leave out or to correct."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.python_text.syntax_words import how_to_correct
from hpc_train.errors import ConfigError

CONFIG = """\
name: x
global_batch_size: 4
trainer: {max_epochs: 1}
model: {class_path: magics.Net}
data: {class_path: magics.Data}
"""


def told(text: str) -> str:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return how_to_correct(error, text.encode())
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("%matplotlib inline\nimport torch\n", "line 1 (%matplotlib inline)"),
        ("x = 1\n!pip install tqdm\n", "line 2 (!pip install tqdm)"),
        ("%%time\nx = 1\n", "line 1 (%%time)"),
        ("x = 1\ntorch.nn?\n", "line 2 (torch.nn?)"),
        ("%a b\n!b\nx = 1\n%c d\n", "line 1 (%a b), line 2 (!b), line 4 (%c d)"),
        ("%a b\n" * 6, "line 4 (%a b) and 2 more"),
        ("def f():\n    !ls\n", "line 2 (!ls)"),
    ],
)
def test_lines_of_a_notebook_are_all_told(text: str, fix: str) -> None:
    assert told(text).startswith("leave out what a notebook alone runs: line ")
    assert told(text).endswith(fix)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("x = (1\ny = 2\nz = )\n", "correct that line: "),
        ("def f()\n    pass\n", "correct that line: def f()"),
        ("x = 5 % \n", "correct that line: x = 5 %"),
        (
            "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n",
            "left both sides there: keep one: line 1 (<<<<<<< HEAD), line 5 (>>>>>>> other)",
        ),
        ("if 1:\n\tx = 1\n        y = 2\n", "indent with blanks alone, or with tabs alone"),
        (f"x = {'y ' * 80}\n", "..."),
    ],
)
def test_any_other_is_told_with_its_line(text: str, fix: str) -> None:
    assert fix in told(text)


@pytest.mark.parametrize("name", ["train.py", "first.yaml"])
def test_a_script_and_a_module_of_a_config_are_told_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for file in ("train.py", "magics.py"):
        Path(file).write_text("import torch\n%matplotlib inline\n")
    Path("first.yaml").write_text(CONFIG)
    with pytest.raises(ConfigError) as caught:
        api.load(name)
    assert "line 2 (%matplotlib inline)" in caught.value.hint
