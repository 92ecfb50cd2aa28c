"""`hpc-train predict`: the model of a run on its data to predict."""

from __future__ import annotations

from hpc_train.cli.evaluation_commands import evaluation_command

command = evaluation_command("predict")
