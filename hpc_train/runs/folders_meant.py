"""The folder of runs that is meant where a folder within it was named: of a run, or of a name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.codec import read_object
from hpc_train.plan.quoting import slug
from hpc_train.runs.layout import RunDir


def folder_of_runs(within: Path) -> Path | None:
    """The folder of runs around the folder of a run, a sweep or a name; None for any other."""
    path = within.absolute()
    if RunDir(path, named=False).session.is_file():
        return path.parent
    if _is_entry(path):
        return path.parent.parent
    return path.parent if any(map(_is_entry, _inside(path))) else None


def beside_the_names(word: str, folders: Sequence[Path]) -> str:
    """What to type for a run's folder that lies in a folder of runs itself, as a copy may.

    Empty where the word names no such folder.
    """
    if "/" in word or word in ("", ".", ".."):
        return ""
    for folder in folders:
        run = RunDir(folder / word)
        if run.plan.is_file():
            typed = shlex.quote(_near(run.path))
            return f"type its folder, {typed}; {to_keep_its_name(run) or 'its name is no RUN'}"
    return ""


def to_keep_its_name(run: RunDir) -> str:
    """What moves a run's folder beside the others of its name; empty where it lies well."""
    name = slug(str(read_object(run.plan).get("name") or ""))
    place = run.path.parent / name
    if not place.is_dir() or _is_entry(place) or (place / run.run_id).exists():
        return ""
    moves = f"mv {shlex.quote(_near(run.path))} {shlex.quote(_near(place))}/"
    return f"{moves} puts it beside the others of its name, {name}"


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
    return f"--runs-dir {shlex.quote(_near(folder))}"


def _near(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _is_entry(path: Path) -> bool:
    return any((path / name).is_file() for name in ("plan.json", "sweep.json", "session.txt"))


def _inside(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir()
    except OSError:
        return
