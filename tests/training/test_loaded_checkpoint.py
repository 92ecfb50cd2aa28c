"""`load_from_checkpoint` of what does not do: what is to be written there, from real loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.rank_failure import RankFailure, failure_of

pytestmark = pytest.mark.filterwarnings("ignore")


class Sized(pl.LightningModule):
    saves: Any = None

    def __init__(self, hidden: int, lr: float = 0.1) -> None:
        super().__init__()
        if self.saves is not None:
            self.save_hyperparameters(*self.saves)
        self.layer = torch.nn.Linear(2, hidden)


class Defaults(Sized):
    def __init__(self, hidden: int = 5, lr: float = 0.1) -> None:
        super().__init__(hidden, lr)


class Takes(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 7)


def saved(path: Path, model: pl.LightningModule) -> Path:
    one = pl.Trainer(accelerator="cpu", logger=False, barebones=True)
    one.strategy.connect(model)
    one.save_checkpoint(path / "m.ckpt")
    return path / "m.ckpt"


def failed(kind: type[pl.LightningModule], path: Any, **given: Any) -> RankFailure:
    with pytest.raises(Exception) as caught:
        kind.load_from_checkpoint(path, **given)
    return failure_of(caught.value)


NONE = "the checkpoint holds no arguments of"


def test_without_saved_arguments_those_that_are_missing_are_named(tmp_path: Path) -> None:
    failure = failed(Sized, saved(tmp_path, Sized(3)))
    assert failure.fix == (
        f"{NONE} Sized: write Sized.load_from_checkpoint(PATH, hidden=...), or"
        " self.save_hyperparameters() in Sized.__init__, and train again"
    )
    assert failure.where.startswith(f"{__file__}:")
    file, _, line = failure.where.rpartition(":")
    assert "load_from_checkpoint(path" in Path(file).read_text().splitlines()[int(line) - 1]


def test_those_that_were_left_out_of_the_saved_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sized, "saves", ("lr",))
    failure = failed(Sized, saved(tmp_path, Sized(3)))
    write = "write Sized.load_from_checkpoint(PATH, hidden=...)"
    assert failure.fix == f"the checkpoint holds lr alone: {write}"
    assert Sized.load_from_checkpoint(tmp_path / "m.ckpt", hidden=3).layer.out_features == 3


def test_a_size_that_is_the_default_where_none_was_saved_is_told(tmp_path: Path) -> None:
    failure = failed(Defaults, saved(tmp_path, Defaults(3)))
    write = "give those that it was trained with, Defaults.load_from_checkpoint(PATH, hidden=...,"
    assert failure.fix.startswith(f"{NONE} Defaults: {write} lr=...)")
    assert "arguments" not in failed(Defaults, tmp_path / "m.ckpt", hidden=4).fix
    assert "arguments" not in failed(Takes, tmp_path / "m.ckpt").fix


def test_a_file_that_is_not_there_and_an_own_error_are_none_of_these(tmp_path: Path) -> None:
    assert "checkpoint" not in failed(Sized, tmp_path / "none.ckpt").fix.replace("m.ckpt", "")
    with pytest.raises(TypeError) as caught:
        Sized()  # type: ignore[call-arg]
    needs = "needs hidden, and Sized() does not give it: write Sized(hidden), or hidden=None in the"
    fix = failure_of(caught.value).fix
    assert fix.startswith("def __init__(self, hidden, lr=...) (")
    assert fix.endswith(f"{needs} def where it may be left out")


@pytest.mark.parametrize("given", ["step-000000048", "", "..", "step-000000012"])
def test_of_a_folder_of_checkpoints_the_file_is_named(tmp_path: Path, given: str) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"
    for step in (48, 12):
        folder = checkpoints / f"step-{step:09d}"
        folder.mkdir(parents=True)
        saved(folder, Sized(3)).rename(folder / "model.ckpt")
    failure = failed(Sized, (checkpoints / given).resolve())
    step = 12 if "12" in given else 48
    assert failure.fix.endswith(f"/run/checkpoints/step-{step:09d}/model.ckpt")
    assert failure.fix.startswith("that is the" if "step" in given else "of the newest checkpoint")


def test_of_another_folder_nothing_is_said(tmp_path: Path) -> None:
    assert failed(Sized, tmp_path).fix == ""
