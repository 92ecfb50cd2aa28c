"""The one place that starts Slurm's programs and reads what they say."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_train.errors import SlurmError

__all__ = ["Said", "is_available", "run"]

DEFAULT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Said:
    """What a program said: its exit status, and both streams as text."""

    returncode: int
    stdout: str
    stderr: str


def is_available(program: str = "sbatch") -> bool:
    """Whether Slurm's commands are on this machine's PATH."""
    return shutil.which(program) is not None


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
) -> Said:
    """Run one of Slurm's programs to its end, with this process's environment or with `env`.

    Raises:
        SlurmError: when it is not installed or does not answer in `timeout_s`. A refusal is not
            raised here: the caller knows what it means.
    """
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise SlurmError(
            f"{argv[0]} is not on this machine's PATH, so there is no Slurm to talk to",
            "log in to a node of the cluster, load its slurm module, or train here with"
            " --cluster local",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SlurmError(
            f"{argv[0]} gave no answer in {timeout_s:.0f} s",
            "the controller may be down or busy: `scontrol ping` tells; try again later",
        ) from error
    return Said(done.returncode, done.stdout, done.stderr)
