"""Checkpoints that a script writes by itself: which is the newest, and of which step it is.

Nothing of them is read but whether they are whole as far as that can be told from outside.
"""

from __future__ import annotations

import glob
import json
import os
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpc_train.codec import Document
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import RunDir

_MOST_UNNAMED = 16  # of them the newest are kept: their names may have the step


@dataclass(frozen=True)
class OwnSave(Document):
    """One of them.

    Attributes:
        path: Absolute.
        stamp: When it was last changed, as `stamp` has it; another one is another checkpoint.
        step: Optimizer steps that it holds, since the run began.
    """

    path: str
    stamp: int
    step: int


@dataclass(frozen=True)
class OwnSaves(Document):
    """All that are known.

    Attributes:
        before: Path -> stamp of what lay there before the run's first attempt: of another run.
        saves: Oldest first.
        unnamed: What torch.save wrote last, from the working directory, of what script.resume does
            not name.
        unnamed_saves: Those with their steps, oldest first: a resume may name them.
    """

    before: dict[str, int] = field(default_factory=dict)
    saves: list[OwnSave] = field(default_factory=list)
    unnamed: str = ""
    unnamed_saves: list[OwnSave] = field(default_factory=list)

    @classmethod
    def of(cls, run: RunDir) -> OwnSaves:
        """Of a run; none where nothing has been noted."""
        try:
            return cls.read(run.own_saves)
        except (OSError, ValueError):
            return cls()

    def write(self, run: RunDir) -> None:
        """Keep them; raises OSError as the file system says."""
        write_text(run.own_saves, json.dumps(self.to_json()))

    def noted(self, path: Path, step: int) -> OwnSaves:
        """With one more, and without those that it has replaced."""
        others = [save for save in self.saves if save.path != str(path)]
        added = OwnSave(str(path), stamp(path), step)
        return replace(self, saves=[*others, added])

    def with_unnamed(self, path: str, workdir: Path, step: int = 0) -> OwnSaves:
        """With what torch.save wrote last at a step, an absolute path that is there."""
        is_below = Path(path).is_relative_to(workdir)
        shown = Path(path).relative_to(workdir) if is_below else path
        others = [save for save in self.unnamed_saves if save.path != path]
        added = OwnSave(path, stamp(Path(path)) if Path(path).exists() else 0, step)
        kept = [*others, added][-_MOST_UNNAMED:]
        return replace(self, unnamed=str(shown), unnamed_saves=kept)

    def step_of(self, path: Path) -> int:
        """Steps in the checkpoint at `path`; of one that was not noted, the newest known."""
        known = [*self.saves, *self.unnamed_saves]
        name = os.path.abspath(path)  # noqa: PTH100 - a link is another file's name, and stays
        exact = [save.step for save in known if save.path in (name, str(path))]
        return max(exact or [save.step for save in self.saves], default=0)

    def is_of_this_run(self, path: Path) -> bool:
        """Whether it has changed since the run began."""
        return self.before.get(str(path)) != stamp(path)


def newest_own_step(run: RunDir) -> int:
    """Steps in the newest of them that is still there; 0 for none."""
    return max(
        (item.step for item in OwnSaves.of(run).saves if Path(item.path).exists()), default=0
    )


def stamp(path: Path) -> int:
    """When it was last changed, in nanoseconds; of a folder, what is in it counts as well."""
    inside = [path, *path.iterdir()] if path.is_dir() else [path]
    return max(item.stat().st_mtime_ns for item in inside)


def newest_save(pattern: str, workdir: Path) -> list[Path]:
    """What is there of a pattern such as `out/checkpoint-*`, the newest first."""
    whole = str(workdir / Path(pattern).expanduser())
    found = [Path(name) for name in glob.glob(whole, recursive=True)]  # noqa: PTH207 - absolute
    dated = []
    for path in found:
        try:
            dated.append((stamp(path), path))
        except OSError:  # deleted meanwhile: scripts keep the last few
            continue
    return [path for _, path in sorted(dated, reverse=True)]


def names_save(pattern: str, workdir: Path, path: str) -> bool:
    """Whether what is there of a pattern is a file, or a folder with it."""
    found = newest_save(pattern, workdir) if pattern else []
    return any(Path(path).is_relative_to(os.path.abspath(it)) for it in found)  # noqa: PTH100


def save_to_go_on_from(pattern: str, workdir: Path, run: RunDir) -> Path | None:
    """The newest of a run that is there of a pattern, and whole; None without one."""
    saves = OwnSaves.of(run)
    found = filter(saves.is_of_this_run, newest_save(pattern, workdir)) if pattern else ()
    return next((path for path in found if is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """False for an empty folder or file, and for a file of torch.save that lacks its end.

    torch.save writes a zip archive, whose directory comes last (torch/serialization.py).
    """
    if path.is_dir():
        return any(path.iterdir())
    with path.open("rb") as stream:
        start = stream.read(2)
    return zipfile.is_zipfile(path) if start == b"PK" else bool(start)
