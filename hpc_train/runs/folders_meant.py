"""The folder of runs that is meant where a folder within it was named: of a run, or of a name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from hpc_train.runs.layout import RunDir


def folder_of_runs(within: Path) -> Path | None:
    """The folder of runs around the folder of a run, a sweep or a name; None for any other."""
    path = within.absolute()
    if RunDir(path, named=False).session.is_file():
        return path.parent
    if _is_entry(path):
        return path.parent.parent
    return path.parent if any(map(_is_entry, _inside(path))) else None


def what_it_is(within: Path) -> str:
    """Which of them it is, for a person."""
    if (within / "sweep.json").is_file():
        return "that is a sweep"
    return (
        "that is a run"
        if _is_entry(within)
        else f"that is the folder of the name {within.absolute().name}"
    )


def as_option(folder: Path) -> str:
    """`--runs-dir runs`, as it is typed in this folder."""
    here = Path.cwd()
    near = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return f"--runs-dir {shlex.quote(str(near))}"


def _is_entry(path: Path) -> bool:
    return any((path / name).is_file() for name in ("plan.json", "sweep.json", "session.txt"))


def _inside(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir()
    except OSError:
        return
