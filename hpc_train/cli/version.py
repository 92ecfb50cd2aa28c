"""Which hpc-train this is: its version, and the commit that it was built or is run from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hpc_train

__all__ = ["version_text"]

_PACKAGE = Path(hpc_train.__file__).parent
# As hatch_build.py has it, which writes the file into a wheel.
_DESCRIBE = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def version_text() -> str:
    """`hpc-train 0.1.0 (commit 1f3c5a7b9d2e)`; `-dirty` behind it where the tree has changes."""
    commit = _commit()
    return f"hpc-train {hpc_train.__version__}" + (f" (commit {commit})" if commit else "")


def _commit() -> str:
    written = _PACKAGE / "commit.txt"
    if written.is_file():
        return written.read_text(encoding="utf-8").strip()
    if not (_PACKAGE.parent / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            _DESCRIBE, cwd=_PACKAGE.parent, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
