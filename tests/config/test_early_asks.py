"""A Trainer or a logger that `__init__` asks for, before there is one, is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write
from tests.config.test_sure_refusals import DATA, GIVES, HEAD, said_of

START = "    def __init__(self, width=1):\n        super().__init__()\n        {line}\n"
ASKS = "cfg.yaml:3: model.class_path: nets.Net.__init__ asks {asked} (nets.py:13), and there is"
ASKS += " no Trainer yet"
SETUP = "setup(self, stage)"
ELSE = f"ask for it from {SETUP} on, which runs before configure_optimizers"
WHOLE = "in configure_optimizers write self.trainer.estimated_stepping_batches"


def of_line(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, more: str = "") -> str:
    return said_of(folder, monkeypatch, f"{GIVES}{START.format(line=line)}{more}")


@pytest.mark.parametrize(
    ("line", "asked", "hint"),
    [
        (
            "self.t_max = self.trainer.max_epochs",
            "self.trainer.max_epochs",
            f"move the line self.t_max = self.trainer.max_epochs into a method def {SETUP}:",
        ),
        ("self.t = width * self.trainer.max_epochs", "self.trainer.max_epochs", ELSE),
        ("print(self.logger.log_dir)", "self.logger.log_dir", ELSE),
        ("board = self.loggers[0]", "self.loggers[0]", ELSE),
        (
            "self.n = self.trainer.estimated_stepping_batches",
            "self.trainer.estimated_stepping_batches",
            f"{WHOLE}, the steps of the whole training",
        ),
        (
            "self.n = len(self.trainer.train_dataloader)",
            "self.trainer.train_dataloader",
            f"{WHOLE}, the steps of the whole training",
        ),
    ],
)
def test_it_is_refused_with_its_line_and_where_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, asked: str, hint: str
) -> None:
    assert of_line(tmp_path, monkeypatch, line) == f"{ASKS.format(asked=asked)} -> {hint}"


def test_several_lines_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "self.a = self.trainer.max_epochs\n        self.b = self.trainer.max_steps"
    write(tmp_path, f"{HEAD}{GIVES}{START.format(line=lines)}{DATA}", "nets.py")
    with pytest.raises(ConfigError) as caught:
        api.load(write(tmp_path, MINIMAL))
    asked = [it.message.partition(" asks ")[2] for it in (caught.value, *caught.value.others)]
    assert [it.partition(",")[0] for it in asked] == [
        "self.trainer.max_epochs (nets.py:13)",
        "self.trainer.max_steps (nets.py:14)",
    ]


def test_a_setup_that_is_there_takes_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "    def setup(self, stage): ...\n"
    said = of_line(tmp_path, monkeypatch, "self.t = self.trainer.max_epochs", more)
    assert said.endswith(f"move the line self.t = self.trainer.max_epochs into its {SETUP}")


def test_that_of_the_data_is_refused_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DATA + START.format(line="self.n = self.trainer.world_size")
    said = said_of(tmp_path, monkeypatch, GIVES, data)
    assert "data.class_path: nets.Data.__init__ asks self.trainer.world_size" in said


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("self.trainer = None", ""),
        ("self.steps = lambda: self.trainer.max_epochs", ""),
        ("if width > 1: self.t = self.trainer.max_epochs", ""),
        ("try: self.t = self.trainer.max_epochs\n        except RuntimeError: pass", ""),
        ("self.t = self.trainer.max_epochs if width > 1 else 3", ""),
        ("if width: return\n        self.t = self.trainer.max_epochs", ""),
        ("return\n        self.t = self.trainer.max_epochs", ""),
        ("self.t = self.trainer.max_epochs", "    @property\n    def trainer(self): return 1\n"),
        ("self.t = self._trainer", ""),
        ("self.now = self.logger", ""),
    ],
)
def test_what_may_not_be_asked_there_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, more: str
) -> None:
    assert "asks" not in of_line(tmp_path, monkeypatch, line, more)
