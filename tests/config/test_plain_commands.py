"""Commands that surely start no rank do not hide a script for one process."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

import pytest

from hpc_train.config.scripts.plain_commands import plain_command_words
from tests.config.files import told_of_script, write
from tests.config.test_single_process import ALONE

told = partial(told_of_script, about="process group")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("os.popen('stty size', 'r').read()", {"popen"}),
        ("os.system('clear')", {"system"}),
        ("os.system('mkdir -p out && cp a.py out/ 2>/dev/null')", {"system"}),
        ("os.system(f'mkdir -p {folder}')", {"system"}),
        ("import subprocess\nsubprocess.run(['git', 'rev-parse', 'HEAD'])", {"subprocess"}),
        (
            "subprocess.check_output(['nvidia-smi'], stderr=subprocess.DEVNULL).decode()",
            {"subprocess"},
        ),
        ("os.system('ls')\nos.system(command)", set()),
        ("os.system('ls && python other.py')", set()),
        ("os.system('ls; torchrun a.py')", set()),
        ("os.system('ls | xargs python')", set()),
        ("os.system('echo $(python a.py)')", set()),
        ("os.system('{tool} a.py')", set()),
        ("os.system(f'{tool} a.py')", set()),
        ("subprocess.run([sys.executable, 'a.py'])", set()),
        ("subprocess.run(['ls'])\nsubprocess.Popen(more)", set()),
        ("from subprocess import run\nsubprocess.run(['ls'])", set()),
        ("import subprocess as sp\nsubprocess.run(['ls'])", set()),
        ("os.system('ls')\nrun = getattr(os, 'system')", set()),
        ("import subprocess", set()),
    ],
)
def test_a_word_is_spared_where_all_its_calls_are_plain(text: str, words: set[str]) -> None:
    assert plain_command_words(ast.parse(text)) == words


@pytest.mark.parametrize("command", ["os.popen('stty size').read()", "os.system('ls')"])
def test_a_script_that_calls_one_is_still_for_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"import os\ndef show():\n    {command}\n", "helper.py")
    refused, _ = told(tmp_path, f"from helper import show\n{ALONE}")
    assert refused is not None
    assert "nothing makes a process group" in refused[0]
    write(tmp_path, "import os\ndef show(it):\n    os.system(it)\n", "helper.py")
    assert told(tmp_path, f"from helper import show\n{ALONE}") == (None, [])
