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
    from hpc_train.config.imported_files import are_all_followed, imported_files
    from hpc_train.config.load import load

    try:
        followed = imported_files([load(run.config).config], workdir.resolve(), project.resolve())
    except (HpcTrainError, OSError):
        return [*files]
    if not followed or not are_all_followed(followed):
        return [*files]
    return [name for name in files if any(_is(file, name) for file in followed)]


def _is(file: Path, name: str) -> bool:
    """Whether a name that is counted from some folder means this file."""
    return f"{file}".endswith(f"/{name}")
