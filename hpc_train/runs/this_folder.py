"""Which runs are those of the folder that one is in: a name means them, and others only to read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from hpc_train.config.words import NEWEST
from hpc_train.errors import NoSuchRunError

_MOST_READ = 200  # plans of other folders' runs, each a file of a shared file system


class InFolderOfRuns(Protocol):
    """A run or a sweep."""

    @property
    def path(self) -> Path:
        """Where it is."""


E = TypeVar("E", bound=InFolderOfRuns)


class RunFolders(list[Path]):
    """Folders that hold runs.

    Attributes:
        own: Those that were named, or are of the folder that one is in; the others are remembered.
    """

    def __init__(self, folders: Iterable[Path], own: Iterable[Path]) -> None:
        """Of `folders` some are `own`."""
        super().__init__(folders)
        self.own = frozenset(own)


def is_own(entry: InFolderOfRuns, folders: Sequence[Path]) -> bool:
    """Whether a run or a sweep is this folder's: it lies in its runs, or was submitted from it."""
    return _lies_here(entry.path, folders) or _submitted_here(entry.path)


def own_first(entries: Sequence[E], folders: Sequence[Path]) -> list[E]:
    """Those of this folder; all, where it has none of them."""
    asked, rest = entries[:_MOST_READ], entries[_MOST_READ:]
    own = [it for it in asked if is_own(it, folders)]
    own += [it for it in rest if _lies_here(it.path, folders)]
    return own or list(entries)


def newest(entries: Sequence[E], folders: Sequence[Path]) -> E | None:
    """The first that is this folder's; the first of all, where it has none."""
    for number, entry in enumerate(entries):
        if _lies_here(entry.path, folders) or (number < _MOST_READ and _submitted_here(entry.path)):
            return entry
    return next(iter(entries), None)


def means_another_folders(
    reference: str, name: str, entry: InFolderOfRuns, folders: Sequence[Path]
) -> bool:
    """Whether a word, and no id, led to a run of another folder."""
    return reference in (name, *NEWEST) and not is_own(entry, folders)


def of_another_folder(reference: str, found: Sequence[InFolderOfRuns]) -> NoSuchRunError:
    """The refusal to change what only the name of another folder's run leads to."""
    shown = ", ".join(
        f"{it.path.name} is in {it.path.parent.parent}" for it in itertools.islice(found, 3)
    )
    several = "one of them, type its id; the newest is"
    which = several if found[1:] else "that one, type its id"
    return NoSuchRunError(
        f"no run of this folder answers to {reference!r}; {shown}",
        f"if you mean {which}: {found[0].path.name}",
    )


def _lies_here(path: Path, folders: Sequence[Path]) -> bool:
    if not isinstance(folders, RunFolders):
        return True
    return any(above in folders.own for above in path.parents)


def _submitted_here(path: Path) -> bool:
    """By its plan; with a copy of the code that names the folder of the project."""
    here = str(Path.cwd())
    for name in ("plan.json", "sweep.json", "snapshot.json"):
        try:
            known = json.loads((path / name).read_text(encoding="utf-8"))
            known = known.get("plan", known)
            folder = known.get("workdir") or str(Path(known["project"]) / known["prefix"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if folder == here:
            return True
    return False
