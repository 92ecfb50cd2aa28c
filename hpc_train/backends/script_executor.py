"""submitit's executor for Slurm, which submits the run's own script instead of one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from submitit import SlurmExecutor


class ScriptExecutor(SlurmExecutor):
    """What `hpc-train render` prints is what is submitted: one text, whoever hands it to sbatch.

    The two methods are those that submitit's executors for other schedulers override
    (submitit.core.core.PicklingExecutor).
    """

    def __init__(self, folder: Path, script: str, options: Sequence[str]) -> None:
        super().__init__(folder=folder)
        self._script = script
        self._options = options

    def _make_submission_file_text(self, command: str, uid: str) -> str:  # noqa: ARG002 - submitit names them
        return self._script

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        return ["sbatch", *self._options, str(submission_file_path)]
