"""What is not wrong with a submission and should be known before the job begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.cli.common import print_notes
from hpc_train.plan.plan import Plan

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig


def note_submission_to(cluster: str | None, asked: LoadedConfig | Plan) -> None:
    """Say where the runs' folder is one that the nodes of a cluster do not see."""
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.doctor.examine_folder import existing_parent, unseen_elsewhere

    runs_dir = asked.runs_dir if isinstance(asked, Plan) else asked.config.runs_dir
    folder = existing_parent(Path(runs_dir).expanduser())
    if (told := unseen_elsewhere(folder)) and (cluster or detect_cluster()) == "slurm":
        print_notes([f"runs_dir {told}: set runs_dir to a folder on the shared file system"])


def note_torch(cluster: str | None, loaded: LoadedConfig) -> None:
    """Say where a job of Slurm's asks for GPUs, and the torch of this Python knows none."""
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.config.code_notes import torch_notes

    if (notes := torch_notes(loaded.config)) and (cluster or detect_cluster()) == "slurm":
        print_notes(notes)
