"""Calls of a script that wait for a terminal: noted at submission."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.python_text.terminal_stops import terminal_stops
from tests.config.files import write


def found(text: str) -> list[tuple[int, str]]:
    return [*terminal_stops(ast.parse(text))]


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("for x in y:\n    breakpoint()", [(2, "breakpoint()")]),
        ("import pdb; pdb.set_trace()", [(1, "pdb.set_trace()")]),
        ("def f():\n    import pdb; pdb.set_trace()\nf()", [(2, "pdb.set_trace()")]),
        ("from ipdb import set_trace\nset_trace()", [(2, "set_trace()")]),
        ("import ipdb as d\nd.set_trace()", [(2, "d.set_trace()")]),
        ("import torch.distributed as dist\ndist.breakpoint(0)", [(2, "dist.breakpoint()")]),
        ("if __name__ == '__main__':\n    breakpoint()", [(2, "breakpoint()")]),
        ("with a:\n    breakpoint()\nbreakpoint()", [(2, "breakpoint()"), (3, "breakpoint()")]),
        ("name = input('name? ')", [(1, "input()")]),
    ],
)
def test_each_is_told_as_it_is_written(text: str, stops: list[tuple[int, str]]) -> None:
    assert found(text) == stops


@pytest.mark.parametrize(
    "text",
    [
        "if args.debug:\n    breakpoint()",
        "x = breakpoint() if debug else 0",
        "try:\n    go()\nexcept ValueError:\n    import pdb; pdb.post_mortem()",
        "for input, target in batches:\n    input(target)",
        "def forward(self, input):\n    return input()",
        "from hydra_zen import input\ninput()",
        "self.set_trace()",
        "import pdb",
    ],
)
def test_what_may_not_be_reached_or_is_another_thing_is_not(text: str) -> None:
    assert found(text) == []


def test_it_is_a_note_of_a_script_and_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "import torch\nfor epoch in range(3):\n    breakpoint()\n", "train.py")
    told = "train.py:3 has a breakpoint(): a job has no terminal to type at, and ends there"
    assert [it for it in api.load("train.py").notes if "terminal" in it] == [told]
