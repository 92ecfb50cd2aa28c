"""A file that is not there, and what may be meant by its path."""

from __future__ import annotations

import glob
import os.path
import re
import shlex
from pathlib import Path

from hpc_train.config.submission_words import again_above
from hpc_train.config.words import did_you_mean, near_words

SCRIPTS = (".sh", ".sbatch", ".slurm", ".job", ".bash")  # of the shell
LOGS = (".out", ".err", ".log", ".txt")
MADE_BY_US = "# Made by hpc-train. Submit it with: sbatch"  # in sbatch_templates/
_NOT_CODE = ("runs", "venv", "env", "node_modules", "build", "dist", "__pycache__")
_MOST = 5  # files that are listed


def absent_file(word: str) -> tuple[str, str] | None:
    """What is said of a log or a shell script that is not there, and what may be meant.

    None for a word that by its ending is neither, unless it is near to one that is there.
    """
    path = Path(word)
    if path.exists() or re.search(r"[*?\[\s]", word):
        return None
    near, endings = near_of_kind(path), _endings_of(path.suffix)
    if not near and path.suffix not in endings:
        return None
    return f"there is no file {word}", _meant(near) or _of_the_kind(path, endings)


def near_of_kind(path: Path) -> list[str]:
    """Logs or shell scripts, as they are typed, that may be meant by the path of none; the best."""
    folder, name = path.parent, path.name
    if not path.suffix:  # an ending left out
        return [f"{path}{it}" for it in (*LOGS, *SCRIPTS) if Path(f"{path}{it}").is_file()][:2]
    if not (endings := _endings_of(path.suffix)):
        return []
    if not folder.is_dir():
        return [name] if Path(name).is_file() else []
    try:
        below = [str(it) for it in sorted(folder.glob(f"[!.]*/{glob.escape(name)}"))]
        names = [it.name for it in folder.iterdir() if it.suffix in endings and it.is_file()]
    except OSError:  # a folder that may not be read
        return []
    names.sort(key=lambda it: (Path(it).suffix == path.suffix, it))
    by_stem = {Path(it).stem: it for it in names}  # whose endings would make any two of them alike
    near = [path.stem] if path.stem in by_stem else near_words(path.stem, sorted(by_stem))
    return below[:2] or [str(folder / by_stem[it]) for it in near]


def _endings_of(ending: str) -> tuple[str, ...]:
    """Those of the same kind of file as this one, which may be mistyped; empty without any."""
    for kind in (SCRIPTS, LOGS):
        if ending in kind or near_words(ending, kind):
            return kind
    return ()


def _meant(near: list[str]) -> str:
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def _of_the_kind(path: Path, endings: tuple[str, ...]) -> str:
    """What there is in the folder in which a file was looked for."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    try:
        names = sorted(it.name for it in folder.iterdir() if it.suffix in endings)
    except OSError:
        return f"{folder} cannot be read"
    where = "this folder" if str(folder) == "." else str(folder)
    if not names:
        return f"no file in {where} ends in {', '.join(endings)}"
    return f"in {where} there are: {', '.join(names[:_MOST])}"


def instead_of_config(path: Path) -> str:
    """What to type for a log or a shell script in a config's place that is not there."""
    near = near_of_kind(path)
    if not near:
        return ""
    file, meant = shlex.quote(near[0]), _meant(near)
    if Path(near[0]).suffix in LOGS:
        return f"{meant} hpc-train diagnose {file} reads a log, and a config ends in .yaml"
    if MADE_BY_US in Path(near[0]).read_text("utf-8", errors="replace"):
        return f"{meant} it is a rendered training: sbatch {file}"
    return f"{meant} hpc-train translate {file} makes a config of a shell script"


def _one_folder_down(folder: Path, name: str) -> str:
    """Where a file of that name lies in a folder of this one; runs keep theirs elsewhere."""
    try:
        found = sorted(folder.glob(f"[!.]*/{glob.escape(name)}"))
    except OSError:  # a folder that may not be read
        return ""
    if len(found) != 1 or not found[0].is_file():
        return ""
    return f"it is in {found[0].parent}: cd {shlex.quote(str(found[0].parent))}, and again"


def above_here(path: Path) -> str:
    """The line to type where a config is there by that very path from a folder above."""
    if path.suffix not in (".yaml", ".yml") or path.is_absolute() or ".." in path.parts:
        return ""
    for up, place in enumerate(Path.cwd().parents[:3], 1):
        if (place / path).is_file():
            return again_above(place, up, path)
    return ""


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
    # An ending left out, and a module as of `python -m`.
    meant = [f"{path.name}{ending}" for ending in (".yaml", ".yml", ".py")]
    for name in (*meant, f"{path.name.replace('.', '/')}.py"):
        if (whole := folder / name).is_file():
            return f"did you mean '{whole}'?"
    if below := _one_folder_down(folder, path.name):
        return below
    if path.suffix not in (".yaml", ".yml") and (other := instead_of_config(path)):
        return other
    there = "" if str(folder) == "." else f"{folder}/"
    return did_you_mean(path.name, names, prefix=there) or (
        f"in {folder} there are: {', '.join(sorted(names)[:5])}"
        if names
        else f"no file in {folder} ends in .yaml"
    )


def near_scripts(written: str, workdir: Path, config: str = "") -> str:
    """What to write for a script that is not there, or where it was looked for.

    Args:
        config: The file that names it; empty where it was typed.
    """
    folder, name = (workdir / written).parent, Path(written).name
    there = sorted(file.name for file in folder.glob("*.py"))
    prefix = written.removesuffix(name)
    own = sorted(file.name for file in workdir.glob("*.py"))
    near = [f"{prefix}{it}" for it in near_words(name, there, cutoff=0.75)]
    if whole := _folders_with(written, workdir):
        meant = [*(f"{it}/{written}" for it in whole), *near][:2]
        return f"{_meant(meant)}{_or_start_in(whole[0], config, workdir)}"
    near = near or near_words(name, own, cutoff=0.75)
    below = [str(it.relative_to(workdir)) for it in workdir.glob(f"[!.]*/{glob.escape(name)}")]
    if near or len(below) == 1:
        return _meant(near or below)
    known = f"; there are: {', '.join(own[:5])}" if own and folder == workdir else ""
    return f"looked in {folder}{known}"


def _folders_with(written: str, workdir: Path) -> list[str]:
    """Folders one or two below this one in which there is a file by that path, at most two."""
    if Path(written).is_absolute() or ".." in Path(written).parts:
        return []
    file = glob.escape(written)
    for pattern in (f"[!.]*/{file}", f"[!.]*/[!.]*/{file}"):
        found = sorted(it for it in workdir.glob(pattern) if it.is_file())
        if found:
            depth = len(Path(written).parts)
            folders = [it.relative_to(workdir).parents[depth - 1] for it in found]
            return [str(it) for it in folders[:2] if it.parts[0] not in _NOT_CODE]
    return []


def _or_start_in(folder: str, config: str, workdir: Path) -> str:
    """The other way for a script that a config names: to submit it from the script's folder."""
    if not config:
        return ""
    seen = os.path.relpath(workdir / config, workdir / folder)
    return (
        f" or, for a job that starts in {folder}: cd {shlex.quote(folder)},"
        f" and there name {shlex.quote(seen)}"
    )


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
