"""What Slurm's accounting knows of a run's jobs once they have ended: CPU time and memory."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import SACCT, is_available, run

FIELDS = "JobID,ElapsedRaw,AllocCPUS,TotalCPU,MaxRSS,NTasks,NNodes"
WAIT_S = 5.0  # a report is worth more than these two rows of it
_CPU_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\Z")
_KIB = {"": 1 / 1024, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}


@dataclass(frozen=True)
class JobsUsage:
    """Of all jobs of a run together.

    Attributes:
        cpu_s: CPU time, user and system.
        allocated_cpu_s: CPUs times seconds for which they were held.
        memory_mib: The most that a node needed: its tasks times the largest of them (MaxRSS).
    """

    cpu_s: float
    allocated_cpu_s: float
    memory_mib: float


def jobs_usage(job_ids: Sequence[str]) -> JobsUsage | None:
    """One sacct for all of them; None where there is no accounting, or it does not answer."""
    if not job_ids or not is_available("sacct"):
        return None
    argv = [*SACCT, "-D", f"--jobs={','.join(job_ids)}", f"--format={FIELDS}"]
    try:
        said = run(argv, timeout_s=WAIT_S, env={**os.environ})
    except SlurmError:
        return None
    return usage_in(said.stdout) if said.returncode == 0 else None


def job_record(job_id: str) -> str:
    """How a job ended by its accounting, `OUT_OF_MEMORY, exit code 0:125, on node1`; or empty."""
    if not job_id or not is_available("sacct"):
        return ""
    argv = [*SACCT, "-X", f"--jobs={job_id}", "--format=State,ExitCode,NodeList"]
    try:
        said = run(argv, timeout_s=WAIT_S, env={**os.environ})
    except SlurmError:
        return ""
    cells = said.stdout.splitlines()[-1].split("|") if said.stdout.strip() else []
    if said.returncode != 0 or len(cells) != 3:
        return ""
    return f"{cells[0]}, exit code {cells[1]}, on {cells[2]}"


def usage_in(text: str) -> JobsUsage | None:
    """Read sacct's lines; a job's own has no dot in its id, those of its steps have."""
    cpu_s = allocated = memory = 0.0
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) != 7:
            continue
        job_id, elapsed, cpus, cpu_time, rss, tasks, nodes = cells
        if "." not in job_id:
            cpu_s += _cpu_s(cpu_time)
            allocated += _number(elapsed) * _number(cpus)
        a_node = -(-_number(tasks) // max(1, _number(nodes)))
        memory = max(memory, _mib(rss) * max(1, a_node))
    return JobsUsage(cpu_s, allocated, memory) if allocated or memory else None


def _cpu_s(text: str) -> float:
    found = _CPU_TIME.match(text)
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _mib(text: str) -> float:
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    number = text[: len(text) - len(unit)]
    try:
        return float(number) * _KIB.get(unit, 0) / 1024
    except ValueError:
        return 0.0


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
