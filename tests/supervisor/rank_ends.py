"""Ranks that ended, as the judges of an attempt are told of them."""

from __future__ import annotations

from hpc_train.supervisor.deaths import (
    Death,
)

# Printed by srun 22.05 when rank 5 of 12 was killed.
SRUN_KILLED = """\
srun: error: node2: task 5: Killed
srun: Terminating StepId=3.0
slurmstepd-node1: error: *** STEP 3.0 ON node1 CANCELLED AT 2026-11-21T07:47:28 ***
srun: error: node1: tasks 0-3: Terminated
srun: error: node2: tasks 4,6-7: Terminated
srun: error: node3: tasks 8-11: Terminated
"""


def killed(rank: int = 1, node: str = "node1", **how: int) -> Death:
    return Death(rank=rank, node=node, **how)
