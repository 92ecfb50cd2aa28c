"""A Python of hpc-train's own, as pipx and uv tool make it: the packages are in another one."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.config.python_text.distributions import install
from hpc_train.config.python_text.modules import find_module, submodules

_OF_A_TOOL = re.compile(r"/pipx/venvs/|/uv/tools/")
_IN_PROJECTS = (".venv", "venv")  # as they are called in the folder of a project
_ACTIVE = {"VIRTUAL_ENV": "env.venv", "CONDA_PREFIX": "env.conda"}


def how_to_see(
    package: str, search_path: Sequence[str], environ: Mapping[str, str] = os.environ
) -> str:
    """What to write for a package that this Python has not, where it is not the project's; else ''.

    Args:
        search_path: As `sys.path`.
        environ: Which an active environment is told by.
    """
    active = {key: environ[it] for it, key in _ACTIVE.items() if _is_other(environ.get(it, ""))}
    runs = f"hpc-train runs in {sys.executable}"
    beside = [("env.venv", it) for it in _IN_PROJECTS if _is_other(it)]  # and nobody activated it
    for key, folder in (*active.items(), *beside):
        if any(package in submodules([str(it)]) for it in _sites(Path(folder))):
            return f"write {key}={shlex.quote(folder)}, which has it: {runs}"
    of_tool = _OF_A_TOOL.search(sys.prefix)
    if not (active or of_tool or find_module("torch", search_path)[0] is None):
        return ""
    named = "env.venv=FOLDER or env.conda=NAME"
    there = "" if of_tool else " there"
    return f"{runs}: name the environment that has it, {named}, or {install(package)}{there}"


def _is_other(folder: str) -> bool:
    """Whether an environment is there, and is not the one of this Python."""
    return Path(folder).is_dir() and bool(folder) and not Path(folder).samefile(sys.prefix)


def _sites(folder: Path) -> list[Path]:
    return sorted(folder.glob("lib/python3*/site-packages"))
