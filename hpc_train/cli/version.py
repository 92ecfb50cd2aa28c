"""Which hpc-train this is: its version, and the commit that it was built or is run from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hpc_train

_PACKAGE = Path(hpc_train.__file__).parent
_DESCRIBE = "git describe --always --dirty --abbrev=12 --exclude='*'"  # as hatch_build.py has it


def version_text() -> str:
    """`hpc-train 0.1.0 (commit 1f3c5a7b9d2e)`; `-dirty` behind it where the tree has changes."""
    commit = _commit()
    return f"hpc-train {hpc_train.__version__}" + (f" (commit {commit})" if commit else "")


def _commit() -> str:
    tree, built_from = _PACKAGE.parent, _PACKAGE / "commit.txt"
    if built_from.is_file():
        return built_from.read_text(encoding="utf-8").strip()
    if not (tree / ".git").exists():
        return ""
    argv = ["/bin/sh", "-c", f"{_DESCRIBE} 2> /dev/null"]
    done = subprocess.run(argv, cwd=tree, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()
