"""What the command line says beside a result, as a warning to who has called from Python."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train import api
from hpc_train.plan.states import RunState
from hpc_train.python_notes import HpcTrainNote, noted, told_end
from hpc_train.runs.status import RunStatus
from tests.config.files import MINIMAL, write

FAILED = RunStatus(
    run="20261127-120000-abcd",
    name="x",
    run_dir="/runs/x/20261127-120000-abcd",
    job_id="",
    backend="local",
    state=RunState.FAILED,
    reason="rank 0 failed: KeyError: 'a'",
)


def said(of: Any, *args: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        of(*args)
    return [it for it in found if it.category is HpcTrainNote]


def test_the_notes_of_a_config_are_warnings_at_the_line_of_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n"
          "    def __init__(self, root=''): super().__init__()\n"
          "    def training_step(self, batch, index): return self(batch).sum()\n"
          "    def configure_optimizers(self): return None\n"
          "class Data(pl.LightningDataModule):\n"
          "    def __init__(self, batch_size, root=''): super().__init__()\n"
          "    def train_dataloader(self): return [1]\n", "nets.py")  # fmt: skip
    path = write(tmp_path, MINIMAL)
    word = "data.init_args.root=imgs"
    notes = said(hpc_train.load, path, word)
    assert tuple(str(it.message) for it in notes) == api.load(path, word).notes
    assert any("data.init_args.root is imgs, which is not in" in str(it.message) for it in notes)
    assert {Path(it.filename) for it in notes} == {Path(__file__)}
    assert said(api.load, path, word) == []  # the command prints them


def test_what_is_loaded_and_its_help_are_those_of_the_function() -> None:
    @dataclasses.dataclass
    class Loaded:
        notes: tuple[str, ...] = ("a", "b")

    loaded = Loaded()

    def load(path: str) -> Any:
        """Reads."""
        return loaded if path == "x" else None

    with pytest.warns(HpcTrainNote, match="[ab]"):
        assert noted(load)("x") is loaded
    assert noted(load).__doc__ == "Reads."
    assert hpc_train.load is hpc_train.load


def test_the_end_of_a_run_that_failed_is_a_warning() -> None:
    (note,) = said(told_end, [dataclasses.replace(FAILED, state=RunState.RUNNING), FAILED])
    told = "x failed: rank 0 failed: KeyError: 'a'; `hpc-train diagnose 20261127-120000-abcd` tells"
    assert str(note.message) == f"{told} why"
    for state in (RunState.COMPLETED, RunState.CANCELLED):
        ended = dataclasses.replace(FAILED, state=state)
        assert said(told_end, [ended]) == []
        assert told_end([ended]) is ended
