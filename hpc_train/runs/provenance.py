"""Which code a run was submitted with: git's commit and the changes on top of it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import hpc_train

__all__ = ["code_state"]

DIFF_LIMIT = 1_000_000  # characters; a larger one is somebody's data


def code_state(workdir: Path) -> str:
    """`environment.json`: commit, diff, Python, host, loaded modules. No variable's value but that.

    The versions of packages are added by the ranks, where they are known without a search.
    """
    document = {
        "schema_version": 1,
        "hpc_train": hpc_train.__version__,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "host": platform.node(),
        "workdir": str(workdir),
        "modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        "git_commit": _git(workdir, "rev-parse", "HEAD"),
        "git_diff": _git(workdir, "diff", "HEAD")[:DIFF_LIMIT],
    }
    return json.dumps(document, indent=2) + "\n"


def _git(workdir: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(workdir), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""
