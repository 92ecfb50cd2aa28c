"""`hpc-train test`: the model of a run on its test data."""

from __future__ import annotations

from hpc_train.cli.evaluation_commands import evaluation_command

command = evaluation_command("test")
