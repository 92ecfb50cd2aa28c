"""Scripts for a job or a step of the tests' cluster, which start hpc-train in it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.cluster import Cluster
from tests.e2e.conftest import DIGITS


def train_script(folder: Path, *words: str) -> Path:
    """A script that types `hpc-train WORDS` in the folder, with a state of its own."""
    argv = [sys.executable, "-m", "hpc_train.cli", *words]
    script = folder / "train.sh"
    state = f"export XDG_STATE_HOME={folder}/state"
    script.write_text(f"#!/bin/sh\ncd {folder}\n{state}\n{shlex.join(argv)} 2>&1\n")
    script.chmod(0o755)
    return script


def rendered_script(cluster: Cluster, folder: Path, *words: str) -> Path:
    """The digits' script, as `hpc-train render` makes it on that cluster."""
    script = folder / "job.sbatch"
    render = [sys.executable, "-m", "hpc_train.cli", "render", str(DIGITS), "-o", str(script)]
    cluster.command([*render, *words], timeout_s=60)
    return script
