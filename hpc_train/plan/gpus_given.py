"""GPUs that Slurm gave, as its variables and its controller tell it. Pure.

Sources: srun(1), OUTPUT ENVIRONMENT VARIABLES; scontrol(1), show job; Slurm's gres.html.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_LISTS = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")  # indices, such as 0-3,7


def gpus_on_node(environ: Mapping[str, str]) -> int | None:
    """How many GPUs Slurm gave this step on this node, None where it does not say."""
    for name in _LISTS:
        if environ.get(name):
            return sum(_length(part) for part in environ[name].split(","))
    count = environ.get("SLURM_GPUS_ON_NODE", "")
    return int(count) if count.isdigit() else None


def _length(part: str) -> int:
    first, _, last = part.partition("-")
    return int(last) - int(first) + 1 if first.isdigit() and last.isdigit() else 1


def gpus_were_given(environ: Mapping[str, str]) -> bool:
    """Whether Slurm (or the user, by CUDA_VISIBLE_DEVICES) gave this process GPUs."""
    visible = environ.get("CUDA_VISIBLE_DEVICES", "").strip()
    return bool(gpus_on_node(environ)) or visible not in ("", "-1", "NoDevFiles")


def gpus_of_job(job: Mapping[str, str]) -> int:
    """How many GPUs a node a job was given, by the fields of `scontrol show job`.

    Inside salloc no variable tells (salloc(1)).
    """
    if found := re.search(r"gpu(?::[^:,=]+)?[:=](\d+)", job.get("TresPerNode", "")):
        return int(found.group(1))
    total = re.search(r"gres/gpu=(\d+)", f"{job.get('TRES')} {job.get('AllocTRES')}")
    return math.ceil(int(total.group(1)) / int(job.get("NumNodes") or 1)) if total else 0


def fewer_than_ranks(ranks: int, gpus: int, key: str) -> tuple[str, str]:
    """What to say where the ranks of a machine are more than its GPUs, and what to write.

    No two ranks can share one (NCCL, "Duplicate GPU detected").

    Args:
        key: That has the ranks train on the CPU.
    """
    what = f"{ranks} ranks on this machine and {gpus} GPU{'s' * (gpus != 1)}"
    fit = f"--nodes 1 --gpus {gpus} trains on GPUs"
    return what, f"{fit}; {key}: cpu trains all {ranks} on the CPU"
