"""What the controller takes of a job array, asked before it is submitted."""

from __future__ import annotations

import re

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import NO_ANSWER, run
from hpc_train.slurm.refusals import no_controller
from hpc_train.slurm.site import controller_down

PING_S = 5.0

# slurm.conf(5): the largest index of a task is one less than MaxArraySize, and MaxJobCount is of
# all jobs that the controller holds.
_LIMIT = re.compile(r"^(MaxArraySize|MaxJobCount)\s*=\s*(\d+)", re.MULTILINE)


def check_array(tasks: int) -> None:
    """Refuse an array of more tasks than this controller takes; a silent one's sbatch refuses it.

    Raises:
        SlurmError: naming the limit, or that no controller is up.
    """
    try:
        said = run(["scontrol", "show", "config"], timeout_s=5).stdout
    except SlurmError as error:
        if NO_ANSWER not in error.message:
            raise
        if down := controller_down(PING_S):
            raise no_controller(down) from error
        return
    for name, limit in _LIMIT.findall(said):
        if tasks > int(limit):
            raise SlurmError(
                f"the sweep has {tasks:,} points, and this Slurm takes {int(limit):,} ({name})",
                "give fewer values, or submit it in parts",
            )
