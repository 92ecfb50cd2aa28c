"""What `hpc-train checkpoints` says to those who load one themselves."""

from __future__ import annotations

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import project, run

__all__ = ["project", "run"]


def test_the_file_that_lightning_reads_is_named(hpc, run: RunDir) -> None:
    """PATH is a folder: Net.load_from_checkpoint(PATH) raised IsADirectoryError."""
    path = run.checkpoints / "step-000000012" / "model.ckpt"
    assert f"in Python: Net.load_from_checkpoint('{path}')\n" in hpc("checkpoints", "x").err
    path.unlink()
    assert "in Python" not in hpc("checkpoints", "x").err
