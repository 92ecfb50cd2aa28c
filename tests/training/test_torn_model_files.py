"""A model that the storage refuses half-way: what was written of it is no model, and takes room."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import read_models
from hpc_train.training.model_files import ModelFiles


def saved(run: RunDir, part: float, *, stay: bool = False, **rank: Any) -> Path:
    """What is left where a save breaks off after a part of the file."""
    path = run.models / "epoch=1-step=18.ckpt"

    def save_checkpoint(filepath: str) -> None:
        stream = io.BytesIO()
        torch.save({"state_dict": {"w": torch.zeros(1000)}}, stream)
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        Path(filepath).write_bytes(stream.getvalue()[: int(len(stream.getvalue()) * part)])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    trainer: Any = SimpleNamespace(
        save_checkpoint=save_checkpoint, checkpoint_callbacks=[], global_step=18,
        current_epoch=1, **{"is_global_zero": True, **rank},
    )  # fmt: skip
    ModelFiles(run, trainer, stay=stay)
    with pytest.raises(OSError, match="No space left"):
        trainer.save_checkpoint(str(path))
    return path


@pytest.mark.parametrize("part", [0.0, 0.4, 0.99])
def test_a_part_of_a_model_is_removed_and_the_error_stays(
    part: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDir(tmp_path / "run")
    path = saved(run, part)
    assert not path.exists()
    assert read_models(run) == []
    said = "could not be saved whole, and is removed: No space left on device"
    assert f"WARNING: {path} {said}" in capsys.readouterr().out


def test_a_whole_one_a_scripts_own_and_one_of_another_rank_stay(tmp_path: Path) -> None:
    assert saved(RunDir(tmp_path / "whole"), 1.0).exists()
    assert saved(RunDir(tmp_path / "script"), 0.4, stay=True).exists()
    assert saved(RunDir(tmp_path / "rank-1"), 0.4, is_global_zero=False).exists()
