"""An argument whose line in the file was left empty is told with the default of the class."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.checking import check_in, refusal_in
from tests.config.files import write

NETS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule

def Helper(size):
    return size

class Net(LightningModule):
    def __init__(
        self, lr: float = 0.1, width=3, name: str = "net", rate: float | None = 0.1,
        seed: int = 0, steps: int = 5, shuffle: bool = True, tag: str = "", many=(1, 2),
        fast: float = 1.0, depth: int = 2, heads: int = 2,
    ):
        super().__init__()
        if steps is not None:
            self.steps = steps
        self.fast = fast or 3
        self.out = Helper(depth), torch.nn.Linear(1, heads)

class Data(LightningDataModule):
    def __init__(self, batch_size: int): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, NETS, "nets.py")
    return tmp_path


def model(*lines: str) -> str:
    return "\n  class_path: nets.Net\n  init_args:\n" + "".join(f"    {it}\n" for it in lines)


@pytest.mark.parametrize(
    ("lines", "line", "name", "default", "kind"),
    [
        (["lr:"], 6, "lr", "0.1", "a number"),
        (["width: 3", "lr:  # later"], 7, "lr", "0.1", "a number"),
        (["width:"], 6, "width", "3", "a number"),
        (["name:"], 6, "name", "'net'", "a text"),
        (['"seed":'], 6, "seed", "0", "a number"),
        (["heads:"], 6, "heads", "2", "a number"),
    ],
)
def test_an_empty_line_is_told_with_the_default(
    folder: Path, lines: list[str], line: int, name: str, default: str, kind: str
) -> None:
    error = refusal_in(folder, model(*lines))
    said = f"is empty, which is null, and nets.Net has {default} there by default"
    assert error.message == f"cfg.yaml:{line}: model.init_args.{name} {said}"
    fix = f"write {kind}, or leave the line out (if None is meant: null)"
    assert error.hint == fix


def test_one_in_braces_as_well(folder: Path) -> None:
    error = refusal_in(folder, "{class_path: nets.Net, init_args: {lr: , width: 3}}")
    assert "model.init_args.lr is empty" in error.message


@pytest.mark.parametrize(
    "lines",
    [
        ["lr: null"],
        ["lr: ~"],
        ["width: null"],
        ["rate:"],
        ["steps:"],
        ["shuffle:"],
        ["tag:"],
        ["many:"],
        ["fast:"],
        ["depth:"],  # another function may look for None
        ["lr:", "  0.3"],
    ],
)
def test_null_that_is_written_or_that_the_class_looks_for_is_taken(
    folder: Path, lines: list[str]
) -> None:
    check_in(folder, model(*lines))
