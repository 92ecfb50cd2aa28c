"""A file that is not there, and what may be meant by its path."""

from __future__ import annotations

import glob
import re
import shlex
from pathlib import Path

from hpc_train.config.words import did_you_mean


def _one_folder_down(folder: Path, name: str) -> str:
    """Where a file of that name lies in a folder of this one; runs keep theirs elsewhere."""
    try:
        found = sorted(folder.glob(f"[!.]*/{glob.escape(name)}"))
    except OSError:  # a folder that may not be read
        return ""
    if len(found) != 1 or not found[0].is_file():
        return ""
    return f"it is in {found[0].parent}: cd {shlex.quote(str(found[0].parent))}, and again"


def near_files(path: Path) -> str:
    """What to write for the path of a file that is not there."""
    folder = path.parent
    if str(path) == "-":
        return "name a file; what a pipe brings is read with /dev/stdin"
    if str(path).startswith("~"):
        return "the shell replaces ~ where it is not in quotes"
    if re.match(r"\w+:/", str(path)):
        return "download it, and name the file"
    if not folder.is_dir() and not path.is_absolute() and Path(path.name).is_file():
        return f"did you mean {path.name!r}?"
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    names = [entry.name for entry in folder.iterdir() if entry.suffix in (".yaml", ".yml")]
    for ending in (".yaml", ".yml", ".py"):  # an ending left out
        if (whole := folder / f"{path.name}{ending}").is_file():
            return f"did you mean '{whole}'?"
    if below := _one_folder_down(folder, path.name):
        return below
    there = "" if str(folder) == "." else f"{folder}/"
    return did_you_mean(path.name, names, prefix=there) or (
        f"in {folder} there are: {', '.join(sorted(names)[:5])}"
        if names
        else f"no file in {folder} ends in .yaml"
    )


def near_scripts(written: str, workdir: Path) -> str:
    """What to write for a script that is not there, or where it was looked for."""
    folder, name = (workdir / written).parent, Path(written).name
    there = sorted(file.name for file in folder.glob("*.py"))
    prefix = written.removesuffix(name)
    own = sorted(file.name for file in workdir.glob("*.py"))
    below = [str(it.relative_to(workdir)) for it in workdir.glob(f"[!.]*/{glob.escape(name)}")]
    near = did_you_mean(name, there, prefix=prefix, cutoff=0.75)
    near = near or did_you_mean(name, own, cutoff=0.75)
    if not near and len(below) == 1:
        near = f"did you mean {below[0]!r}?"
    known = f"; there are: {', '.join(own[:5])}" if own and folder == workdir else ""
    return near or f"looked in {folder}{known}"


def configs_in(folder: Path) -> str:
    """Which configs a folder has that was given in a config's place."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:  # it may not be listed
        return "name the config in it"
    if not (configs := [it for it in names if it.endswith((".yaml", ".yml"))]):
        return f"no file in {folder} ends in .yaml"
    if str(folder) != "." and any(it.endswith(".py") for it in names):  # a project of its own
        return f"cd {shlex.quote(str(folder))}, and name a config there: {', '.join(configs[:5])}"
    return f"name a config: {', '.join(shlex.quote(str(folder / it)) for it in configs[:5])}"
