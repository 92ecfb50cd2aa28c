"""A rank among several whose process ended with exit code 0 in C code, and says so nowhere. Pure.

The others lose their connections to it, as in a failure of the network. srun tells each end but
that with 0 [seen on 22.05]; and it ends by itself only once it knows of all of its tasks: a rank on
a node that was lost or cut off it waits for, or says that it has lost the node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.plan.states import RankExit
from hpc_train.runs.ranks import ENDED_ITSELF, ExitRecord, Heartbeat
from hpc_train.supervisor.deaths import ranks_in_srun_log

_ERROR = "exit code 0 before the run was complete (exit() or _exit() in C code)"
# All that a srun says that has ended by itself after a task has failed, and what it says before.
_KNOWN = re.compile(
    r"srun: (?:error: \S+: tasks? [\d,\-\[\]]+: Exited with exit code \d+"
    r"|(?:launch/slurm: _step_signal: )?(?:Force )?Terminat(?:ing|ed) StepId=\S+"
    r"|[Ss]tep creation .*|Step created for .*)\s*"
)


def silent_ends(
    said: str, records: Sequence[ExitRecord], beats: Sequence[Heartbeat], world_size: int
) -> list[ExitRecord]:
    """What ranks would have told that ended with 0 while all others lost their connections.

    Args:
        said: By a srun that has ended by itself, with nobody asked to stop and no node lost.
    """
    spoken, last = {record.rank for record in records}, {beat.rank: beat for beat in beats}
    is_network = all(
        record.code == RankExit.NETWORK and record.kind == "network" for record in records
    )
    lines = [line for line in said.splitlines() if line.startswith(("srun:", "slurmstepd"))]
    silent = sorted(set(range(world_size)) - spoken)
    # That it tells of all others shows that it would have told of these.
    is_told = set(ranks_in_srun_log(said)) == spoken and all(map(_KNOWN.fullmatch, lines))
    if not (records and silent and is_network and is_told):
        return []
    if not all(_was_at_work(last.get(rank)) for rank in silent):
        return []
    step = max((record.step for record in records if record.step is not None), default=None)
    return [_record(last[rank], step) for rank in silent]


def _was_at_work(beat: Heartbeat | None) -> bool:
    if beat is None or beat.phase == "end":
        return False
    return beat.steps is None or beat.step < beat.steps


def _record(beat: Heartbeat, step: int | None) -> ExitRecord:
    """Its last sign of life may be a second old; the others waited for it in the very step."""
    return ExitRecord(
        rank=beat.rank,
        node=beat.node,
        time=beat.time,
        code=1,
        kind=ENDED_ITSELF,
        step=step,
        phase=beat.phase,
        error=_ERROR,
    )
