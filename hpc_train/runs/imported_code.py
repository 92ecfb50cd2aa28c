"""Of files that were edited, those that a run's code is made of: what it does not import is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.runs.layout import RunDir


def imported_by(run: RunDir, workdir: Path, project: Path, files: Sequence[str]) -> list[str]:
    """Those of `files` that the ranks import; all, where that cannot be told from the text.

    Args:
        run: A run; that of a rendered script has no config, which names the classes.
        workdir: The folder that the ranks run in.
        project: The top of what is the user's own.
        files: From `workdir` or from `project`.
    """
    if not files or not run.config.is_file():
        return [*files]
    # They read a config, which takes a tenth of a second, and only where something was edited.
    from hpc_train.config.load import load
    from hpc_train.config.python_text.imported_files import (
        are_all_followed,
        imported_files,
        names_imported,
    )

    gone = gone_of(files, (workdir, project))
    try:
        configs = [load(run.config).config]
        followed = imported_files(configs, workdir.resolve(), project.resolve())
        names = names_imported(configs, followed) if gone else set()
    except (HpcTrainError, OSError):
        return [*files]
    if not followed or not are_all_followed(followed):
        return [*files]
    wanted = {name for name in gone if any(_may_mean(dotted, name) for dotted in names)}
    return [name for name in files if name in wanted or any(_is(it, name) for it in followed)]


def gone_of(files: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Those of `files` that none of these folders has any more."""
    return [name for name in files if not any((folder / name).exists() for folder in folders)]


def files_of_module(dotted: str) -> tuple[str, str]:
    """The files that a module is, from a folder in which modules are looked for."""
    place = dotted.replace(".", "/")
    return f"{place}.py", f"{place}/__init__.py"


def _may_mean(dotted: str, name: str) -> bool:
    """Whether an import of this name asks for a file, from whichever folder modules are found."""
    module = name.removesuffix(".py").removesuffix("/__init__").split("/")
    words = dotted.split(".")
    return any(words[: len(module) - k] == module[k:] for k in range(len(module)))


def _is(file: Path, name: str) -> bool:
    """Whether a name that is counted from some folder means this file."""
    return f"{file}".endswith(f"/{name}")
