"""Writes the commit into what is built, for `hpc-train --version`; see hpc_train/cli/version.py."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT_FILE = "hpc_train/commit.txt"
DESCRIBE = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]


class CustomBuildHook(BuildHookInterface[Any]):
    """A source archive keeps the commit that it was made from; without git nothing is said."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are collected."""
        # The folder of an unpacked archive may lie in a repository of somebody else.
        if version == "editable" or not Path(self.root, ".git").exists():
            return
        try:
            done = subprocess.run(
                DESCRIBE, cwd=self.root, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)  # read when the archive is written
        file = Path(folder, "commit.txt")
        file.write_text(done.stdout, encoding="utf-8")
        build_data["force_include"][str(file)] = COMMIT_FILE
