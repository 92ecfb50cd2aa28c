"""What runs take on the disk, by what it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpc_train.runs.layout import RunDir
from hpc_train.runs.sweep_dir import Entry

# Folders of a run and of a sweep; what stands in none of them is `other`.
_PARTS = {
    **dict.fromkeys(("checkpoints", "models", "weights"), "checkpoints"),
    **dict.fromkeys(("attempts", "submitit", "monitor", "metrics", "logs"), "logs"),
    "snapshot": "snapshot",
}
_BLOCK = 512  # stat(2), st_blocks
_Inode = tuple[int, int]


@dataclass(frozen=True)
class DiskUse:
    """In bytes, as du(1) counts: blocks, a link itself, a file of several names once.

    Attributes:
        checkpoints: Also models and the weights that a run begins with.
        logs: Of ranks and jobs, metrics, the monitor's files.
        snapshot: The copy of the code.
        unreadable: Folders that could not be looked into.
    """

    checkpoints: int = 0
    logs: int = 0
    snapshot: int = 0
    other: int = 0
    unreadable: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.checkpoints + self.logs + self.snapshot + self.other


def entry_id(entry: Entry) -> str:
    """The id of a run or a sweep."""
    return entry.path.name


def folders_of(entry: Entry) -> list[Path]:
    """A run's folder; of a sweep those of its points, and its own last."""
    if isinstance(entry, RunDir):
        return [entry.path]
    points = entry.path.parent.glob(f"{entry.path.name}-*")
    return [*sorted(path for path in points if path.name.rpartition("-")[2].isdigit()), entry.path]


def disk_use(folders: Iterable[Path], seen: set[_Inode]) -> DiskUse:
    """What these folders take together; no link is followed.

    Args:
        seen: Files of several names that were counted already; grows.
    """
    sizes = dict.fromkeys(("checkpoints", "logs", "snapshot", "other", "unreadable"), 0)
    for folder in folders:
        for part, size in _sizes(str(folder), "other", seen, top=True):
            sizes[part] += size
    return DiskUse(**sizes)


def _sizes(
    folder: str, part: str, seen: set[_Inode], *, top: bool = False
) -> Iterator[tuple[str, int]]:
    """Part and bytes of everything in a folder; what is deleted meanwhile is not there."""
    try:
        with os.scandir(folder) as found:
            children = list(found)
    except FileNotFoundError:
        return
    except OSError:
        yield "unreadable", 1
        return
    for child in children:
        try:
            stat = child.stat(follow_symlinks=False)
            is_folder = child.is_dir(follow_symlinks=False)
        except OSError:
            continue
        belongs = _PARTS.get(child.name, part) if top else part
        if stat.st_nlink == 1 or is_folder or (stat.st_dev, stat.st_ino) not in seen:
            yield belongs, stat.st_blocks * _BLOCK
        if is_folder:
            yield from _sizes(child.path, belongs, seen)
        elif stat.st_nlink > 1:
            seen.add((stat.st_dev, stat.st_ino))


def size_text(size: float) -> str:
    """`0 B`, `12 KiB`, `1.4 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
