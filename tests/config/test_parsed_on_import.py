"""A command line that is parsed as a module is imported, which each rank does without arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

PARSER = 'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--width", {})\n'
NEEDS, HAS = PARSER.format("required=True"), PARSER.format("type=int, default=3")
PARSES = "args = parser.parse_args()\n"
GUARD = 'if __name__ == "__main__":\n    '
NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self): super().__init__()
    def training_step(self, batch, index): return self(batch).sum()
    def configure_optimizers(self): return None
class Data(pl.LightningDataModule):
    def __init__(self, batch_size=1): super().__init__()
    def train_dataloader(self): return [1]
"""
RUNS = "parse_args() runs as it is imported, in each rank, whose command line has no arguments"
TAKE = "have the class take what it needs as init_args"


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, apart: bool = False) -> str:
    """What is refused, or else noted, of a file with that text in front of its classes."""
    monkeypatch.chdir(folder)
    write(folder, f"from opts import args\n{NETS}" if apart else f"{text}{NETS}", "nets.py")
    write(folder, text, "opts.py")
    try:
        notes = api.load(write(folder, MINIMAL)).notes
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return "".join(it for it in notes if "parse_args" in it)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("parses", "line"),
    [
        (PARSES, 4),
        ("def options():\n    return parser.parse_args()\nargs = options()\n", 5),
        ("import sys\nargs = parser.parse_args(sys.argv[1:])\n", 5),
    ],
)
def test_an_argument_that_is_required_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parses: str, line: int, apart: bool
) -> None:
    """Each rank ended with SystemExit: 2."""
    file = "opts.py" if apart else "nets.py"
    assert told(tmp_path, monkeypatch, f"{NEEDS}{parses}", apart=apart) == (
        f"cfg.yaml:3: model.class_path: {file}:{line}: {RUNS}: the following arguments are"
        f' required: --width -> put it below `if __name__ == "__main__":`, and {TAKE}'
    )


@pytest.mark.parametrize("apart", [False, True])
def test_defaults_are_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    file = "opts.py" if apart else "nets.py"
    said = told(tmp_path, monkeypatch, f"{HAS}{PARSES}", apart=apart)
    assert said == f"{file}:4: {RUNS}: its defaults hold there; {TAKE}"


@pytest.mark.parametrize("parser", [NEEDS, HAS])
@pytest.mark.parametrize(
    "parses",
    [
        f"{GUARD}{PARSES}",
        f"def main():\n    {PARSES}{GUARD}main()\n",
        f"def options():\n    {PARSES}",
        "args = parser.parse_args(['--width', '3'])\n",
        f"import sys\nsys.argv = ['x', '--width', '3']\n{PARSES}",
        f"import sys\nif len(sys.argv) > 1:\n    {PARSES}",
    ],
)
def test_what_is_not_run_or_has_its_own_words_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: str, parses: str
) -> None:
    assert told(tmp_path, monkeypatch, f"{parser}{parses}") == ""
