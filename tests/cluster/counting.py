"""Slurm's programs, each behind one that notes the call: what a command or a job asks of Slurm."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SLURM_PROGRAMS", "Call", "Counting"]

SLURM_PROGRAMS = (
    *("sbatch", "srun", "salloc", "scancel", "squeue", "sacct", "scontrol", "sinfo"),
    *("sacctmgr", "sprio", "sdiag", "sstat"),
)


@dataclass(frozen=True)
class Call:
    """When, from which job (empty: from outside of all), which program."""

    time: float
    job: str
    program: str


@dataclass(frozen=True)
class Counting:
    """Wrappers in a folder that all nodes see; jobs inherit the PATH with it."""

    folder: Path

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """`environ` with the wrappers first on PATH."""
        self.folder.mkdir(exist_ok=True)
        self._log.write_text("")
        for name in SLURM_PROGRAMS:
            wrapper = self.folder / name
            wrapper.write_text(
                f'#!/bin/sh\necho "$(date +%s.%N) ${{SLURM_JOB_ID:--}} {name}" >> {self._log}\n'
                f'exec {shutil.which(name)} "$@"\n'
            )
            wrapper.chmod(0o755)
        return {**environ, "PATH": f"{self.folder}{os.pathsep}{environ['PATH']}"}

    @property
    def _log(self) -> Path:
        return self.folder / "calls"

    def calls(self) -> list[Call]:
        """All so far, in order."""
        rows = (line.split() for line in self._log.read_text().splitlines())
        return [Call(float(at), "" if job == "-" else job, name) for at, job, name in rows]

    def of_job(self, job: str) -> Counter[str]:
        """How often each program was called in a job."""
        return Counter(call.program for call in self.calls() if call.job == job)

    def from_outside(self) -> Counter[str]:
        """How often each program was called by commands that are in no job."""
        return self.of_job("")
