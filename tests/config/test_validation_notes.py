"""What is noted of a training that ends before its first validation."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.validation_notes import validation_notes
from hpc_train.config.load import load

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer:
  accelerator: cpu
"""
NEVER = "check_val_every_n_epoch is 5, and trainer.max_epochs 2: no epoch is validated"


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        ([], []),
        (["max_epochs: 3"], []),
        (["check_val_every_n_epoch: 5"], []),
        (["max_epochs: 2", "check_val_every_n_epoch: 5"], [NEVER]),
        (["max_epochs: 5", "check_val_every_n_epoch: 5"], []),
        (["max_epochs: -1", "check_val_every_n_epoch: 5"], []),
        (["max_epochs: 2", "check_val_every_n_epoch: null"], []),
    ],
)
def test_epochs_without_validation_are_noted(
    tmp_path: Path, lines: list[str], notes: list[str]
) -> None:
    file = tmp_path / "cfg.yaml"
    file.write_text(CONFIG + "".join(f"  {line}\n" for line in lines))
    found = list(validation_notes(load(file)))
    assert found == [f"{file}:8: trainer.{note}" for note in notes]
