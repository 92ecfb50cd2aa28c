"""`--` in front of the file: the line that was meant, with its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("-- train.py --lr 0.1", "-- stands in front of CFG", "hpc-train run train.py -- --lr 0.1"),
        (
            "--gpus 2 -- train.py --lr 0.1",
            "-- stands in front of CFG",
            "hpc-train run --gpus 2 train.py -- --lr 0.1",
        ),
        ("-- cfg.yaml seed=3", "-- stands in front of CFG", "hpc-train run cfg.yaml seed=3"),
        (
            "-- python train.py --lr 0.1",
            "python stands where CFG belongs",
            "hpc-train run train.py -- --lr 0.1",
        ),
        (
            "--gpus 2 -- python train.py --lr 0.1",
            "python stands where CFG belongs",
            "hpc-train run train.py --gpus 2 -- --lr 0.1",
        ),
    ],
)
def test_what_stands_behind_dashes_and_is_no_argument_is_told_as_it_is_typed(
    hpc, project: Path, typed: str, message: str, fix: str
) -> None:
    refused(hpc, project, ["run", *typed.split()], 2, message, fix)
