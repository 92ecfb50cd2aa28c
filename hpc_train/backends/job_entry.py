"""What runs inside a job that submitit started, on Slurm or locally."""

from __future__ import annotations

import os
from pathlib import Path


def train_in_job(run_dir: str, visible_gpus: str | None) -> None:
    """Supervise one job of the run and leave with the supervisor's exit code.

    Args:
        run_dir: Absolute path of the run directory.
        visible_gpus: CUDA_VISIBLE_DEVICES of the shell that submitted a local job: submitit's
            local executor would hide all GPUs otherwise. None leaves the variable as it is,
            "unset" removes it.
    """
    from hpc_train.runs.layout import RunDir
    from hpc_train.supervisor.__main__ import run_to_exit_code

    if visible_gpus == "unset":
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    elif visible_gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible_gpus
    code = run_to_exit_code(lambda: RunDir(Path(run_dir)))
    if code:
        raise SystemExit(code)
